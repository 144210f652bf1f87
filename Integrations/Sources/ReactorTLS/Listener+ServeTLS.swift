import Promises
import Reactor

// Serving with TLS. The handshake is the first part of each handler: `maxConnections` counts its connection, and its error is
// an error of the handler.

extension Listener {
    /// As `serve`, with TLS: the handler is called with each connection whose handshake has succeeded.
    ///
    /// ```swift
    /// listener.serve(tls: server, onError: { error, connection in log("\(connection): \(error)") }) { connection in
    ///     connection.forEachLine { line in connection.write(line + "\n") }
    /// }
    /// ```
    /// - Parameters:
    ///   - server: the settings, which may be reloaded meanwhile; `nil` to serve in plain text.
    ///   - maxConnections: as for `serve`; connections count from their handshake on.
    ///   - maxLingering: as for `serve`.
    ///   - onError: as for `serve`; also called for handshakes that fail, which any peer can bring about.
    ///   - handler: as for `serve`.
    /// - Returns: as `serve`.
    public func serve<Done: Thenable>(
        tls server: TLSServer?, maxConnections: Int = .max, maxLingering: Int? = nil,
        onError: ((any Error, Connection) -> Void)? = nil, _ handler: @escaping (Connection) throws -> Done,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        serve(
            maxConnections: maxConnections, maxLingering: maxLingering, onError: onError,
            { connection in connection.begin(server, file, line).then(handler) }, file: file,
            line: line)
    }

    /// As `serve(on:)`, with TLS: handshakes run on the loops of the group.
    /// - Parameters:
    ///   - group: the loops.
    ///   - server: the settings, which may be reloaded meanwhile; `nil` to serve in plain text.
    ///   - balancing: as for `serve(on:)`.
    ///   - maxConnections: as for `serve`; connections count from their handshake on.
    ///   - maxLingering: as for `serve`.
    ///   - onError: as for `serve(on:)`; also called for handshakes that fail.
    ///   - handler: as for `serve(on:)`.
    /// - Returns: as `serve(on:)`.
    public func serve<Done: Thenable & SendableMetatype>(
        on group: LoopGroup, tls server: TLSServer?, balancing: LoopGroup.Balancing = .leastConnections,
        maxConnections: Int = .max, maxLingering: Int? = nil,
        onError: (@Sendable (any Error, Connection) -> Void)? = nil,
        _ handler: @escaping @Sendable (Connection) throws -> Done, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        serve(
            on: group, balancing: balancing, maxConnections: maxConnections, maxLingering: maxLingering,
            onError: onError,
            { connection in connection.begin(server, file, line).then(handler) }, file: file,
            line: line)
    }

    /// As `serve(untilStoppedBy:)`, with TLS.
    /// - Parameters:
    ///   - server: the settings, which may be reloaded meanwhile; `nil` to serve in plain text.
    ///   - signals: at least one.
    ///   - drainTimeout: how long the drain may take; a handshake that has begun may end within it.
    ///   - maxConnections: as for `serve`; connections count from their handshake on.
    ///   - maxLingering: as for `serve`.
    ///   - onSignal: as for `serve(untilStoppedBy:)`.
    ///   - onError: as for `serve`; also called for handshakes that fail.
    ///   - handler: as for `serve`.
    /// - Returns: as `serve(untilStoppedBy:)`.
    public func serve<Done: Thenable>(
        tls server: TLSServer?, untilStoppedBy signals: [CInt], drainTimeout: Duration, maxConnections: Int = .max,
        maxLingering: Int? = nil, onSignal: ((CInt) -> Void)? = nil,
        onError: ((any Error, Connection) -> Void)? = nil, _ handler: @escaping (Connection) throws -> Done,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<DrainResult> {
        serve(
            untilStoppedBy: signals, drainTimeout: drainTimeout, maxConnections: maxConnections,
            maxLingering: maxLingering, onSignal: onSignal, onError: onError,
            { connection in connection.begin(server, file, line).then(handler) }, file: file,
            line: line)
    }

    /// As `serve(on:untilStoppedBy:)`, with TLS.
    /// - Parameters:
    ///   - group: the loops.
    ///   - server: the settings, which may be reloaded meanwhile; `nil` to serve in plain text.
    ///   - balancing: as for `serve(on:)`.
    ///   - signals: at least one.
    ///   - drainTimeout: how long the drain may take; a handshake that has begun may end within it.
    ///   - maxConnections: as for `serve`; connections count from their handshake on.
    ///   - maxLingering: as for `serve`.
    ///   - onSignal: as for `serve(untilStoppedBy:)`.
    ///   - onError: as for `serve(on:)`; also called for handshakes that fail.
    ///   - handler: as for `serve(on:)`.
    /// - Returns: as `serve(on:untilStoppedBy:)`.
    public func serve<Done: Thenable & SendableMetatype>(
        on group: LoopGroup, tls server: TLSServer?, balancing: LoopGroup.Balancing = .leastConnections,
        untilStoppedBy signals: [CInt], drainTimeout: Duration, maxConnections: Int = .max,
        maxLingering: Int? = nil, onSignal: ((CInt) -> Void)? = nil,
        onError: (@Sendable (any Error, Connection) -> Void)? = nil,
        _ handler: @escaping @Sendable (Connection) throws -> Done, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<DrainResult> {
        serve(
            on: group, balancing: balancing, untilStoppedBy: signals, drainTimeout: drainTimeout,
            maxConnections: maxConnections, maxLingering: maxLingering, onSignal: onSignal, onError: onError,
            { connection in connection.begin(server, file, line).then(handler) }, file: file,
            line: line)
    }
}
