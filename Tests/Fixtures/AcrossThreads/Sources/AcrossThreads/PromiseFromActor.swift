import Promises

/// What an actor's own promise refers to may be the actor's own.
func promiseFromActor(_ archive: Archive) async -> Promise<Ledger> {
    await archive.give()  // error: non-Sendable 'Promise<Ledger>'-typed result
}
