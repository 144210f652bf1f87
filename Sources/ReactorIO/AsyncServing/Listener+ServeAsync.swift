import Promises
import Reactor

// Serving with async handlers. Not an overload of `serve`, so that there a handler's result may be an `if` or a `switch`
// of promises.

extension Listener {
    /// Serves like `serve`, but runs an async `handler` in a task on this thread's loop. A connection is closed when
    /// its handler has returned or thrown.
    ///
    /// ```swift
    /// listener.serveAsync(ServeOptions(maxConnections: 10_000)) { connection in
    ///     for try await line in connection.lines { try await connection.write(line + "\n").value }
    /// }
    /// ```
    ///
    /// The handler begins at once and continues as jobs of the loop, even after it has awaited code that runs
    /// elsewhere. The handler, and the actorless async functions that it calls, may use values that belong to this
    /// thread, such as the connection, `Sendable` or not. `Task { … }` leaves the loop, so the compiler lets only
    /// `Sendable` values into it. If the handler belongs to an actor, the actor must live on this loop; for the main
    /// actor, this must be the main thread's loop.
    ///
    /// The task is cancelled when the connection is aborted, for instance at a drain's deadline; when it fails without
    /// a pending read or write, for instance by a reset or its `idleTimeout`; and when the loop ends. A close or the
    /// peer's orderly end does not cancel it, because the peer may wait for its answer. Reads and writes throw when the
    /// peer has gone or the connection was closed. The connection counts as active, and the loop stays alive, until the
    /// task has ended.
    /// - Parameters:
    ///   - options: the limits, and the signals that stop the server.
    ///   - onError: called with a handler's error and its connection, but not for connections that `drain` has ended.
    ///     If a failure of the connection has cancelled the handler, called with that failure; not called for other
    ///     cancellations. Without `onError`, `conf.logHandler` gets the error, as for `serve`.
    ///   - handler: handles one connection; called on the listener's loop.
    /// - Returns: the same as `serve`. Also rejected at once with `DispatchError.badInput` if `handler` belongs to an
    ///   actor that is not on this loop.
    @discardableResult
    public func serveAsync(
        _ options: ServeOptions = ServeOptions(), onError: ((any Error, Connection) -> Void)? = nil,
        handler: @escaping @isolated(any) (Connection) async throws -> Void, file: StaticString = #fileID,
        line: UInt = #line
    ) -> Promise<DrainResult> {
        if let error = refusal(of: handler.isolation) { return Promise(error: error, file, line) }
        return begin(options, on: nil, onError, file, line) { tracker, connection, transfer in
            tracker.serve(connection, transfer, awaiting: handler, CallSite(file, line))
        }
    }

    /// Serves like `serve(on:)`, but runs an async `handler` in a task on its connection's loop, as `serveAsync` does.
    ///
    /// Values that a handler makes stay on that loop and need not be `Sendable`. Values that handlers share must be
    /// `Sendable`: such as an actor, or a `LoopLocal`, whose value on this loop is `value(for: connection)`. `onError`
    /// is also called on that loop.
    /// - Returns: the same as `serve(on:)`. Also rejected at once with `DispatchError.badInput` if `handler` belongs to
    ///   an actor.
    @discardableResult
    public func serveAsync(
        on group: LoopGroup, _ options: ServeOptions = ServeOptions(),
        onError: (@Sendable (any Error, Connection) -> Void)? = nil,
        handler: @escaping @isolated(any) @Sendable (Connection) async throws -> Void, file: StaticString = #fileID,
        line: UInt = #line
    ) -> Promise<DrainResult> {
        if let error = refusal(of: handler.isolation, onGroup: true) { return Promise(error: error, file, line) }
        return begin(options, on: group, onError, file, line) { @Sendable tracker, connection, transfer in
            tracker.serve(connection, transfer, awaiting: handler, CallSite(file, line))
        }
    }

    /// Returns the error for a handler that belongs to `actor` and would not run on this loop. A group has several
    /// loops, so it refuses every actor.
    private func refusal(of actor: (any Actor)?, onGroup: Bool = false) -> DispatchError? {
        guard let actor, onGroup || !loop.runsJobs(of: actor) else { return nil }
        let (form, reason) =
            onGroup
            ? ("serveAsync(on:)", "to which connections of several loops cannot belong")
            : ("serveAsync", "which does not live on the listener's loop")
        return .badInput(
            "\(form) with a handler of the actor \(type(of: actor)), \(reason); pass a handler that belongs to no actor, "
                + "and await the actor's methods in it")
    }
}
