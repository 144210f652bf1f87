import Promises

/// The body of a guarantee runs elsewhere too, and its value has to be sent back.
func objectInAsyncGuarantee(_ ledger: Ledger) -> Guarantee<Int> {
    Guarantee { () async -> Int in
        ledger.entries.count  // error: capture of 'ledger' with non-Sendable type 'Ledger'
    }
}

func objectOfAsyncGuarantee() {
    _ = Guarantee { await Ledger.found() }  // error: type 'Ledger' does not conform to the 'Sendable' protocol
}
