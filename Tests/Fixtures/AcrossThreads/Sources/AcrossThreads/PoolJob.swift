import Reactor

/// And without any promise.
func poolJob(_ ledger: Ledger, _ pool: ThreadPool) throws {
    try pool.dispatch {
        ledger.entries.append("job")  // error: capture of 'ledger' with non-Sendable type 'Ledger'
    }
}
