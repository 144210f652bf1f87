import Promises

/// A task runs on any thread.
func resolverInTask() -> Promise<Ledger> {
    let (promise, resolver) = Promise<Ledger>.pending()
    Task.detached {  // error: risks causing data races
        resolver.fulfill(Ledger())
    }
    return promise
}
