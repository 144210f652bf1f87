import Promises
import Reactor

// Serving with async handlers. These forms are disfavored, so that the handler's result may be an `if` or a `switch` of
// promises.

extension Listener {
    /// As `serve`, with an async `handler`, which runs in a task on this thread's loop. A connection is closed when its
    /// handler has returned or thrown.
    ///
    /// ```swift
    /// listener.serveAsync(ServeOptions(maxConnections: 10_000)) { connection in
    ///     for try await line in connection.lines { try await connection.write(line + "\n").value }
    /// }
    /// ```
    ///
    /// The handler begins at once and continues as jobs of the loop, also after it has awaited an actor or a function
    /// that runs elsewhere. It may use values that belong to this thread, such as the connection, `Sendable` or not; so
    /// may the async functions that it calls and that belong to no actor. `Task { … }` in it leaves the loop, and the
    /// compiler lets only `Sendable` values go there. A handler in a method of an actor needs an actor that lives on
    /// this loop; a handler of the main actor needs a loop of the main thread.
    ///
    /// The task is cancelled when the connection is aborted, for instance at the deadline of a drain; when it fails
    /// while no read and no write is pending, for instance by a reset or its `idleTimeout`; or when the loop ends. It
    /// is not cancelled by a close, however that ends, nor by the peer's orderly end, after which the peer may wait for
    /// its answer. The connection counts as active until the task or the loop has ended. When the peer has gone, or the
    /// connection was closed, reads and writes throw. The loop stays alive until the task has ended.
    /// - Parameters:
    ///   - options: the limits, and the signals that stop the server.
    ///   - onError: called with an error that a handler has thrown, and its connection. Not for a cancellation, except
    ///     by a failure of the connection, which is then the error; nor for a connection that `drain` has ended.
    ///     Without it, `conf.logHandler` gets the error, as for `serve`.
    ///   - handler: handles one connection; called on the loop of the listener.
    /// - Returns: as `serve`. Also rejected at once with `DispatchError.badInput` if `handler` belongs to an actor that
    ///   is not on this loop.
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

    /// Like `serve(on:)`, with an async `handler`, as in `serveAsync`: each runs in a task on the loop of its
    /// connection.
    ///
    /// Values that a handler makes may be used on the loop of its connection and need not be `Sendable`. Values that
    /// handlers share must be `Sendable`, such as an actor, or a `LoopLocal`, whose value on this loop is
    /// `value(for: connection)`. `onError` is called on the connection's loop, too.
    /// - Returns: as `serve(on:)`. Also rejected at once with `DispatchError.badInput` if `handler` belongs to an
    ///   actor, such as the main actor.
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

    /// The error for a handler that belongs to `actor`, if it would not run on this loop; each one on a group, which has
    /// several loops.
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
