import Promises
import Reactor

/// The same without a promise before it.
func poolWork(_ ledger: Ledger, _ pool: ThreadPool) -> Promise<Int> {
    Promise(on: pool) { () throws -> Int in
        ledger.entries.count  // error: capture of 'ledger' with non-Sendable type 'Ledger'
    }
}
