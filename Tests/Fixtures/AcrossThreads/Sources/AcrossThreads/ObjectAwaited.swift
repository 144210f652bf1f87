import Promises

/// A promise that has been sent to an actor is the actor's: it cannot be awaited here as well.
func objectAwaited(_ archive: Archive) async throws -> Ledger {
    let promise = Promise.value(Ledger())
    await archive.take(promise)  // error: sending 'promise' risks causing data races
    return try await promise.value
}

/// And what was awaited before is the actor's too.
func objectAwaitedBefore(_ archive: Archive) async throws {
    let promise = Promise.value(Ledger())
    let ledger = try await promise.value
    await archive.take(promise)  // error: sending 'promise' risks causing data races
    ledger.entries.append("mine?")
}
