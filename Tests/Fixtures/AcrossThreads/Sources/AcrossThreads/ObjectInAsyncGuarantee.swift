import Promises

/// The same for a guarantee; and what it comes to has to get here.
func objectInAsyncGuarantee(_ ledger: Ledger) -> Guarantee<Int> {
    Guarantee { () async -> Int in
        ledger.entries.count  // error: capture of 'ledger' with non-Sendable type 'Ledger'
    }
}

func objectOfAsyncGuarantee() {
    _ = Guarantee { await Ledger.found() }  // error: type 'Ledger' does not conform to the 'Sendable' protocol
}
