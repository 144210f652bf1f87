import Glibc
import Reactor

// Handlers that return no promise and await nothing. Without these forms such a closure would be an async handler, and
// a forgotten `return` would compile.

extension Listener {
    /// Closes each connection as soon as the handler has returned.
    /// - Parameters:
    ///   - maxConnections: as for `serve`.
    ///   - maxLingering: as for `serve`.
    ///   - onError: called with the error that a handler has thrown, and its connection; see `serve`.
    ///   - handler: handles one connection; called on the loop of the listener.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: as the form whose handler returns a promise.
    @available(*, deprecated, message: "the connection ends when this handler returns: return a promise, or await")
    public func serve(
        maxConnections: Int = .max, maxLingering: Int? = nil, onError: ((any Error, Connection) -> Void)? = nil,
        _ handler: @escaping (Connection) throws -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        serve(
            maxConnections: maxConnections, maxLingering: maxLingering, onError: onError, Self.returning(handler),
            file: file, line: line)
    }

    /// Closes each connection as soon as the handler has returned.
    /// - Parameters:
    ///   - group: the loops that run the handlers.
    ///   - balancing: as for `serve(on:)`.
    ///   - maxConnections: as for `serve`.
    ///   - maxLingering: as for `serve`.
    ///   - onError: called with the error that a handler has thrown, and its connection, on the connection's loop.
    ///   - handler: called on the connection's loop.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: as the form whose handler returns a promise.
    @available(*, deprecated, message: "the connection ends when this handler returns: return a promise, or await")
    public func serve(
        on group: LoopGroup, balancing: LoopGroup.Balancing = .leastConnections, maxConnections: Int = .max,
        maxLingering: Int? = nil, onError: (@Sendable (any Error, Connection) -> Void)? = nil,
        _ handler: @escaping @Sendable (Connection) throws -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        serve(
            on: group, balancing: balancing, maxConnections: maxConnections, maxLingering: maxLingering,
            onError: onError, { connection in try Self.run { try handler(connection) } }, file: file, line: line)
    }

    /// Closes each connection as soon as the handler has returned.
    /// - Parameters:
    ///   - group: the loops that run the handlers.
    ///   - state: as for `serve(on:state:)`.
    ///   - balancing: as for `serve(on:)`.
    ///   - maxConnections: as for `serve`.
    ///   - maxLingering: as for `serve`.
    ///   - onError: called with the error that a handler has thrown, its connection and the value, on the connection's
    ///     loop.
    ///   - handler: called with the connection and the value of its loop, on that loop.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: as the form whose handler returns a promise.
    @available(*, deprecated, message: "the connection ends when this handler returns: return a promise, or await")
    public func serve<State: SendableMetatype>(
        on group: LoopGroup, state: LoopLocal<State>, balancing: LoopGroup.Balancing = .leastConnections,
        maxConnections: Int = .max, maxLingering: Int? = nil,
        onError: (@Sendable (any Error, Connection, State) -> Void)? = nil,
        _ handler: @escaping @Sendable (Connection, State) throws -> Void, file: StaticString = #fileID,
        line: UInt = #line
    ) -> Promise<Void> {
        serve(
            on: group, state: state, balancing: balancing, maxConnections: maxConnections, maxLingering: maxLingering,
            onError: onError, { connection, state in try Self.run { try handler(connection, state) } }, file: file,
            line: line)
    }

    /// Closes each connection as soon as the handler has returned.
    /// - Parameters:
    ///   - signals: the signals that stop the listener; at least one.
    ///   - drainTimeout: how long the drain may take; see `drain(deadline:)`.
    ///   - maxConnections: as for `serve`.
    ///   - maxLingering: as for `serve`.
    ///   - onSignal: as for the form whose handler returns a promise.
    ///   - onError: called with the error that a handler has thrown, and its connection; see `serve`.
    ///   - handler: handles one connection; called on the loop of the listener.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: as the form whose handler returns a promise.
    @available(*, deprecated, message: "the connection ends when this handler returns: return a promise, or await")
    public func serve(
        untilStoppedBy signals: [CInt], drainTimeout: Duration, maxConnections: Int = .max, maxLingering: Int? = nil,
        onSignal: ((CInt) -> Void)? = nil, onError: ((any Error, Connection) -> Void)? = nil,
        _ handler: @escaping (Connection) throws -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<DrainResult> {
        serve(
            untilStoppedBy: signals, drainTimeout: drainTimeout, maxConnections: maxConnections,
            maxLingering: maxLingering, onSignal: onSignal, onError: onError, Self.returning(handler), file: file,
            line: line)
    }

    /// Closes each connection as soon as the handler has returned.
    /// - Parameters:
    ///   - group: the loops that run the handlers.
    ///   - balancing: as for `serve(on:)`.
    ///   - signals: the signals that stop the listener; at least one.
    ///   - drainTimeout: how long the drain may take; see `drain(deadline:)`.
    ///   - maxConnections: as for `serve`.
    ///   - maxLingering: as for `serve`.
    ///   - onSignal: as for `serve(untilStoppedBy:)`; called on the listener's loop.
    ///   - onError: called with the error that a handler has thrown, and its connection, on the connection's loop.
    ///   - handler: called on the connection's loop.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: as the form whose handler returns a promise.
    @available(*, deprecated, message: "the connection ends when this handler returns: return a promise, or await")
    public func serve(
        on group: LoopGroup, balancing: LoopGroup.Balancing = .leastConnections, untilStoppedBy signals: [CInt],
        drainTimeout: Duration, maxConnections: Int = .max, maxLingering: Int? = nil,
        onSignal: ((CInt) -> Void)? = nil, onError: (@Sendable (any Error, Connection) -> Void)? = nil,
        _ handler: @escaping @Sendable (Connection) throws -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<DrainResult> {
        serve(
            on: group, balancing: balancing, untilStoppedBy: signals, drainTimeout: drainTimeout,
            maxConnections: maxConnections, maxLingering: maxLingering, onSignal: onSignal, onError: onError,
            { connection in try Self.run { try handler(connection) } }, file: file, line: line)
    }

    /// Closes each connection as soon as the handler has returned.
    /// - Parameters:
    ///   - group: the loops that run the handlers.
    ///   - state: as for `serve(on:state:)`.
    ///   - balancing: as for `serve(on:)`.
    ///   - signals: the signals that stop the listener; at least one.
    ///   - drainTimeout: how long the drain may take; see `drain(deadline:)`.
    ///   - maxConnections: as for `serve`.
    ///   - maxLingering: as for `serve`.
    ///   - onSignal: as for `serve(untilStoppedBy:)`; called on the listener's loop.
    ///   - onError: called with the error that a handler has thrown, its connection and the value, on the connection's
    ///     loop.
    ///   - handler: called with the connection and the value of its loop, on that loop.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: as the form whose handler returns a promise.
    @available(*, deprecated, message: "the connection ends when this handler returns: return a promise, or await")
    public func serve<State: SendableMetatype>(
        on group: LoopGroup, state: LoopLocal<State>, balancing: LoopGroup.Balancing = .leastConnections,
        untilStoppedBy signals: [CInt], drainTimeout: Duration, maxConnections: Int = .max, maxLingering: Int? = nil,
        onSignal: ((CInt) -> Void)? = nil, onError: (@Sendable (any Error, Connection, State) -> Void)? = nil,
        _ handler: @escaping @Sendable (Connection, State) throws -> Void, file: StaticString = #fileID,
        line: UInt = #line
    ) -> Promise<DrainResult> {
        serve(
            on: group, state: state, balancing: balancing, untilStoppedBy: signals, drainTimeout: drainTimeout,
            maxConnections: maxConnections, maxLingering: maxLingering, onSignal: onSignal, onError: onError,
            { connection, state in try Self.run { try handler(connection, state) } }, file: file, line: line)
    }

    /// Closes each connection as soon as the handler has returned.
    /// - Parameters:
    ///   - signals: the signals that stop the listener; at least one.
    ///   - drainTimeout: how long the drain may take; see `drain(deadline:)`.
    ///   - maxConnections: as for `serve`.
    ///   - maxLingering: as for `serve`.
    ///   - onSignal: as for `serve(untilStoppedBy:)`.
    ///   - onError: called with the error that a handler has thrown, and its connection; see `serve`.
    ///   - handler: handles one connection; called on the loop of the listener.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: what became of the connections that were open at the first signal.
    /// - Throws: as the form whose handler returns a promise.
    @available(*, deprecated, message: "the connection ends when this handler returns: return a promise, or await")
    @available(*, noasync, message: "an async function must not block its thread; await serve(untilStoppedBy:)")
    @discardableResult
    public func serveUntilStopped(
        by signals: [CInt] = [SIGTERM, SIGINT], drainTimeout: Duration, maxConnections: Int = .max,
        maxLingering: Int? = nil, onSignal: ((CInt) -> Void)? = nil, onError: ((any Error, Connection) -> Void)? = nil,
        _ handler: @escaping (Connection) throws -> Void, file: StaticString = #fileID, line: UInt = #line
    ) throws -> DrainResult {
        try serveUntilStopped(
            by: signals, drainTimeout: drainTimeout, maxConnections: maxConnections, maxLingering: maxLingering,
            onSignal: onSignal, onError: onError, Self.returning(handler), file: file, line: line)
    }

    private static func returning(
        _ handler: @escaping (Connection) throws -> Void
    ) -> (Connection) throws -> Promise<Void> {
        { connection in try run { try handler(connection) } }
    }

    private static func run(_ body: () throws -> Void) rethrows -> Promise<Void> {
        try body()
        return .value
    }
}
