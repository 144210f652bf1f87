import Reactor

// Serving on the loops of a group with a value of each loop.

extension Listener {
    /// As `serve(on:)`, and passes the value of the connection's loop to the handler: what all connections of a loop
    /// share, `Sendable` or not.
    ///
    /// ```swift
    /// let counters = LoopLocal { Counters() }
    /// listener.serve(on: group, state: counters) { connection, counters in
    ///     counters.connections += 1
    ///     return connection.forEachChunk { connection.write($0) }
    /// }.catch { error in log(error) }
    /// ```
    ///
    /// - Parameters:
    ///   - state: its value is made on each loop before the first connection there is served.
    ///   - balancing: as for `serve(on:)`.
    ///   - maxConnections: as for `serve`.
    ///   - maxLingering: as for `serve`.
    ///   - onError: is called with the error of a handler, its connection and the value, on the connection's loop; see
    ///     `serve`.
    ///   - handler: called on the connection's loop.
    ///   - group: the loops that run the handlers.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: as `serve(on:)`.
    public func serve<State, Done: Thenable & SendableMetatype>(
        on group: LoopGroup, state: LoopLocal<State>, balancing: LoopGroup.Balancing = .leastConnections,
        maxConnections: Int = .max, maxLingering: Int? = nil,
        onError: (@Sendable (any Error, Connection, State) -> Void)? = nil,
        _ handler: @escaping @Sendable (Connection, State) throws -> Done, file: StaticString = #fileID,
        line: UInt = #line
    ) -> Promise<Void> {
        serve(on: group, balancing, maxConnections, maxLingering, file, line) { tracker, connection, keeper in
            let state = state.value(on: connection.loop)
            let report = onError.map { onError in { error, connection in onError(error, connection, state) } }
            tracker.serve(connection, keeper, report) { try handler($0, state) }
        }
    }

    /// As `serve(on:state:)`, with an async handler.
    ///
    /// ```swift
    /// listener.serve(on: group, state: counters) { connection, counters in
    ///     for try await line in connection.lines {
    ///         counters.lines += 1
    ///         try await connection.write(line + "\n").value
    ///     }
    /// }.catch { error in log(error) }
    /// ```
    ///
    /// - Parameters:
    ///   - state: as for the form with promises.
    ///   - balancing: as for `serve(on:)`.
    ///   - maxConnections: as for `serve`.
    ///   - maxLingering: as for `serve`.
    ///   - onError: as for the form with promises; see `serve` with an async handler.
    ///   - handler: called on the connection's loop.
    ///   - group: the loops that run the handlers.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: as `serve(on:)` with an async handler.
    public func serve<State: SendableMetatype>(
        on group: LoopGroup, state: LoopLocal<State>, balancing: LoopGroup.Balancing = .leastConnections,
        maxConnections: Int = .max, maxLingering: Int? = nil,
        onError: (@Sendable (any Error, Connection, State) -> Void)? = nil,
        _ handler: @escaping @isolated(any) @Sendable (Connection, State) async throws -> Void,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        if let error = refusal(ofOnGroup: handler.isolation) { return Promise(error: error, file, line) }
        let site = CallSite(file, line)
        return serve(on: group, balancing, maxConnections, maxLingering, file, line) { tracker, connection, keeper in
            let state = state.value(on: connection.loop)
            let report = onError.map { onError in { error, connection in onError(error, connection, state) } }
            let call = { (connection: Connection) async throws -> Void in
                // Sound because the handler, which belongs to no actor, runs on this thread.
                nonisolated(unsafe) let (connection, state) = (connection, state)
                try await handler(connection, state)
            }
            tracker.serve(connection, keeper, report, awaiting: call, site)
        }
    }

    /// As `serve(on:untilStoppedBy:)`, and passes the value of the connection's loop to the handler, as
    /// `serve(on:state:)`.
    /// - Parameters:
    ///   - state: as for `serve(on:state:)`.
    ///   - balancing: as for `serve(on:)`.
    ///   - signals: at least one.
    ///   - drainTimeout: how long the drain may take; see `drain(deadline:)`.
    ///   - maxConnections: as for `serve`.
    ///   - maxLingering: as for `serve`.
    ///   - onSignal: as for `serve(untilStoppedBy:)`; called on the listener's loop.
    ///   - onError: as for `serve(on:state:)`.
    ///   - handler: as for `serve(on:state:)`.
    ///   - group: the loops that run the handlers.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: as `serve(on:untilStoppedBy:)`.
    public func serve<State, Done: Thenable & SendableMetatype>(
        on group: LoopGroup, state: LoopLocal<State>, balancing: LoopGroup.Balancing = .leastConnections,
        untilStoppedBy signals: [CInt], drainTimeout: Duration, maxConnections: Int = .max, maxLingering: Int? = nil,
        onSignal: ((CInt) -> Void)? = nil, onError: (@Sendable (any Error, Connection, State) -> Void)? = nil,
        _ handler: @escaping @Sendable (Connection, State) throws -> Done, file: StaticString = #fileID,
        line: UInt = #line
    ) -> Promise<DrainResult> {
        serve(untilStoppedBy: signals, drainTimeout, onSignal, file, line) {
            serve(
                on: group, state: state, balancing: balancing, maxConnections: maxConnections,
                maxLingering: maxLingering, onError: onError, handler, file: file, line: line)
        }
    }

    /// As `serve(on:state:untilStoppedBy:)`, with an async handler.
    /// - Parameters:
    ///   - state: as for `serve(on:state:)`.
    ///   - balancing: as for `serve(on:)`.
    ///   - signals: at least one.
    ///   - drainTimeout: how long the drain may take; see `drain(deadline:)`.
    ///   - maxConnections: as for `serve`.
    ///   - maxLingering: as for `serve`.
    ///   - onSignal: as for `serve(untilStoppedBy:)`; called on the listener's loop.
    ///   - onError: as for `serve(on:state:)`.
    ///   - handler: as for `serve(on:state:)` with an async handler.
    ///   - group: the loops that run the handlers.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: as `serve(on:untilStoppedBy:)` with an async handler.
    public func serve<State: SendableMetatype>(
        on group: LoopGroup, state: LoopLocal<State>, balancing: LoopGroup.Balancing = .leastConnections,
        untilStoppedBy signals: [CInt], drainTimeout: Duration, maxConnections: Int = .max, maxLingering: Int? = nil,
        onSignal: ((CInt) -> Void)? = nil, onError: (@Sendable (any Error, Connection, State) -> Void)? = nil,
        _ handler: @escaping @isolated(any) @Sendable (Connection, State) async throws -> Void,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<DrainResult> {
        serve(untilStoppedBy: signals, drainTimeout, onSignal, file, line) {
            serve(
                on: group, state: state, balancing: balancing, maxConnections: maxConnections,
                maxLingering: maxLingering, onError: onError, handler, file: file, line: line)
        }
    }
}
