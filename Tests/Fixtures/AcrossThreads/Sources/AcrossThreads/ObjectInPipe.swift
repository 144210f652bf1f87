import Promises

/// What `pipe` is given runs on the thread that settles, whichever that is. (`done` runs on this one.)
func objectInPipe(_ ledger: Ledger, _ promise: Promise<String>) {
    promise.pipe { _ in
        ledger.entries.append("piped")  // error: capture of 'ledger' with non-Sendable type 'Ledger'
    }
}
