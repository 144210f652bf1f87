import Promises
import Reactor

/// The same without a promise before it.
func poolWork(_ ledger: Ledger, _ pool: ThreadPool) -> Promise<Int> {
    pool.async(.promise) { () throws -> Int in
        ledger.entries.count  // error: capture of 'ledger' with non-Sendable type 'Ledger'
    }
}
