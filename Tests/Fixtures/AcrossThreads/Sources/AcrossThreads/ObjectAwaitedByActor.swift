import Promises

/// What an actor awaits is the actor's own.
func objectAwaitedByActor(_ archive: Archive) async throws -> Ledger {
    try await archive.first()  // error: non-Sendable 'Ledger'-typed result
}
