import Reactor

/// An async handler whose isolation has been checked.
// @unchecked: the closure is called on the thread of the loop that the connection belongs to. If it is not `Sendable`,
// it belongs to that thread.
struct AsyncHandler: @unchecked Sendable {
    let call: (Connection) async throws -> Void

    init(_ handler: @escaping @isolated(any) (Connection) async throws -> Void) {
        call = { connection in
            // Sound because the actor that the handler belongs to, if any, runs on the connection's thread.
            nonisolated(unsafe) let connection = connection
            try await handler(connection)
        }
    }

    /// Calls `prepare` first, if there is one.
    func prepared(by prepare: ((Connection) -> Promise<Connection>)?) -> (Connection) async throws -> Void {
        guard let prepare else { return call }
        return { connection in try await call(try await prepare(connection).value) }
    }
}

extension Listener {
    /// The error for a handler that belongs to `actor`, if it would not run on this loop.
    func refusal(of actor: (any Actor)?) -> DispatchError? {
        guard let actor, !loop.runsJobs(of: actor) else { return nil }
        return .badInput(
            "serve with a handler of the actor \(type(of: actor)), which does not live on the listener's loop; pass a "
                + "handler that belongs to no actor, and await the actor's methods in it")
    }

    /// The error for a handler that belongs to `actor`, since a group has several loops.
    func refusal(ofOnGroup actor: (any Actor)?) -> DispatchError? {
        guard let actor else { return nil }
        return .badInput(
            "serve(on:) with a handler of the actor \(type(of: actor)), to which connections of several loops cannot "
                + "belong; pass a handler that belongs to no actor, and await the actor's methods in it")
    }
}
