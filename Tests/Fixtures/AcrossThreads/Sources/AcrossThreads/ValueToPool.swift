import Promises
import Reactor

/// The value has to get there.
func valueToPool(_ promise: Promise<Ledger>) -> Promise<Int> {
    promise.map(on: ThreadPool.shared) {  // error: type 'Ledger' does not conform to the 'Sendable' protocol
        $0.entries.count
    }
}
