import Promises

/// So does one with `on: nil`: on the thread that settles.
func objectInline(_ ledger: Ledger, _ promise: Promise<String>) -> Promise<Int> {
    promise.map(on: nil) { text in
        text.count + ledger.entries.count  // error: capture of 'ledger' with non-Sendable type 'Ledger'
    }
}
