import Promises

/// An async closure runs in a task of its own, on another thread.
func objectInAsync(_ ledger: Ledger) -> Promise<Int> {
    Promise { () async throws -> Int in
        ledger.entries.count  // error: capture of 'ledger' with non-Sendable type 'Ledger'
    }
}
