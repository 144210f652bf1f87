import Reactor

// Serving with async handlers.

extension Listener {
    /// Accepts connections until the listener is closed, and calls the async `handler` with each, in a task that runs
    /// on this thread's loop. A connection is closed when its handler has returned or thrown.
    ///
    /// ```swift
    /// listener.serve(maxConnections: 10_000) { connection in
    ///     for try await line in connection.lines { try await connection.write(line + "\n").value }
    /// }.catch { error in log(error) }
    /// ```
    ///
    /// The handler begins at once and continues as jobs of the loop, also after it has awaited an actor or a function
    /// that runs elsewhere. It may use what belongs to this thread, such as the connection, `Sendable` or not; so may
    /// the async functions that it calls and that belong to no actor. `Task { … }` in it leaves the loop, and the
    /// compiler lets only `Sendable` values go there. A handler in a method of an actor must be that of an actor that
    /// lives on this loop; a handler of the main actor needs a loop of the main thread.
    ///
    /// The task is cancelled when the connection is aborted, at the deadline of a drain for instance, when it fails while
    /// no read and no write waits, by a reset or its `idleTimeout` for instance, or when the loop ends; not by a close,
    /// however that ends, nor by the peer's orderly end, after which the peer may wait for its answer. The connection
    /// counts as active until the task or the loop has ended. When the peer has gone, or the connection was closed, reads
    /// and writes throw. The loop stays alive until the task has ended.
    /// - Parameters:
    ///   - maxConnections: as for the form with promises.
    ///   - maxLingering: as for the form with promises.
    ///   - onError: is called with the error that a handler has thrown, and its connection; not for a cancellation,
    ///     except by a failure of the connection, which is the error then; nor for a connection that `drain` has ended.
    ///     Without it errors are not reported.
    ///   - handler: handles one connection; called on the loop of the listener.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: as the form with promises. Also rejected at once with `DispatchError.badInput` if `handler` belongs
    ///   to an actor that does not live on this loop.
    public func serve(
        maxConnections: Int = .max, maxLingering: Int? = nil, onError: ((any Error, Connection) -> Void)? = nil,
        _ handler: @escaping @isolated(any) (Connection) async throws -> Void, file: StaticString = #fileID,
        line: UInt = #line
    ) -> Promise<Void> {
        if let error = refusal(of: handler.isolation) { return Promise(error: error, file, line) }
        let handler = AsyncHandler(handler)
        let site = CallSite(file, line)
        // Unowned: only the listener calls it.
        let service = startService(maxConnections, maxLingering) { [unowned self] accepted in
            tracker.serve(accepted.connection(on: loop), self, onError, awaiting: handler.call, site)
        }
        if service.isPending { tracker.lingeringLimit = Self.lingeringLimit(maxLingering, maxConnections) }
        return Promise(service.core.traced(root: "serve", Promise<Void>.self, file, line))
    }

    /// As `serve` with an async handler, but on the loops of `group`, as `serve(on:)`: each handler runs in a task on
    /// the loop of its connection.
    ///
    /// ```swift
    /// let group = try LoopGroup(name: "server")
    /// listener.serve(on: group) { connection in
    ///     for try await line in connection.lines { try await connection.write(line + "\n").value }
    /// }.catch { error in log(error) }
    /// ```
    ///
    /// What a handler makes may be used on the loop of its connection and need not be `Sendable`. What the handlers
    /// share is `Sendable`, such as an actor.
    /// - Parameters:
    ///   - balancing: as for `serve(on:)`.
    ///   - maxConnections: as for `serve`.
    ///   - maxLingering: as for `serve`.
    ///   - onError: as for `serve` with an async handler; called on the connection's loop.
    ///   - handler: called on the connection's loop.
    ///   - group: the loops that run the handlers.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: as `serve(on:)`. Also rejected at once with `DispatchError.badInput` if `handler` belongs to an
    ///   actor, such as the main actor.
    public func serve(
        on group: LoopGroup, balancing: LoopGroup.Balancing = .leastConnections, maxConnections: Int = .max,
        maxLingering: Int? = nil, onError: (@Sendable (any Error, Connection) -> Void)? = nil,
        _ handler: @escaping @isolated(any) @Sendable (Connection) async throws -> Void, file: StaticString = #fileID,
        line: UInt = #line
    ) -> Promise<Void> {
        if let error = refusal(ofOnGroup: handler.isolation) { return Promise(error: error, file, line) }
        let handler = AsyncHandler(handler)
        let site = CallSite(file, line)
        return serve(on: group, balancing, maxConnections, maxLingering, file, line) { tracker, connection, keeper in
            tracker.serve(connection, keeper, onError, awaiting: handler.call, site)
        }
    }

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
}
