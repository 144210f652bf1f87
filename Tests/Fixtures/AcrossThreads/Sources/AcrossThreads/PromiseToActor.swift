import Promises

/// An actor is another thread.
func promiseToActor(_ promise: Promise<Ledger>, _ archive: Archive) async {
    await archive.take(promise)  // error: sending 'promise' risks causing data races
}
