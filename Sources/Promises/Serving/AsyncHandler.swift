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
