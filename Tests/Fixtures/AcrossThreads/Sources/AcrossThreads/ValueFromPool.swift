import Promises
import Reactor

/// And what is returned has to come back.
func valueFromPool(_ promise: Promise<String>) -> Promise<Void> {
    let ledger = promise.map(on: ThreadPool.shared) { _ in  // error: type 'Ledger' does not conform to the 'Sendable'
        Ledger()
    }
    return ledger.asVoid()
}
