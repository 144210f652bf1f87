import Promises
import Reactor

/// A closure with `on:` runs elsewhere.
func objectOnPool(_ ledger: Ledger, _ promise: Promise<String>) -> Promise<Void> {
    promise.map(on: ThreadPool.shared) { text in
        ledger.entries.append(text)  // error: capture of 'ledger' with non-Sendable type 'Ledger'
    }
}
