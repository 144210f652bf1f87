import Promises
import Reactor

// Serving with TLS and async handlers.

extension Listener {
    /// As `serve` with an async handler, with TLS: the handler is called with each connection whose handshake has succeeded.
    /// It belongs to no actor.
    /// - Parameters:
    ///   - server: the settings, which may be reloaded meanwhile; `nil` to serve in plain text.
    ///   - maxConnections: as for `serve`; connections count from their handshake on.
    ///   - maxLingering: as for `serve`.
    ///   - onError: as for `serve`; also called for handshakes that fail.
    ///   - handler: as for `serve` with an async handler.
    /// - Returns: as `serve`.
    public func serve(
        tls server: TLSServer?, maxConnections: Int = .max, maxLingering: Int? = nil,
        onError: ((any Error, Connection) -> Void)? = nil,
        _ handler: @escaping (Connection) async throws -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        serve(
            maxConnections: maxConnections, maxLingering: maxLingering, onError: onError,
            { connection async throws -> Void in
                _ = try await connection.begin(server, file, line).value
                try await handler(connection)
            }, file: file, line: line)
    }

    /// As `serve(on:)` with an async handler, with TLS.
    /// - Parameters:
    ///   - group: the loops.
    ///   - server: the settings, which may be reloaded meanwhile; `nil` to serve in plain text.
    ///   - balancing: as for `serve(on:)`.
    ///   - maxConnections: as for `serve`; connections count from their handshake on.
    ///   - maxLingering: as for `serve`.
    ///   - onError: as for `serve(on:)`; also called for handshakes that fail.
    ///   - handler: as for `serve(on:)` with an async handler.
    /// - Returns: as `serve(on:)`.
    public func serve(
        on group: LoopGroup, tls server: TLSServer?, balancing: LoopGroup.Balancing = .leastConnections,
        maxConnections: Int = .max, maxLingering: Int? = nil,
        onError: (@Sendable (any Error, Connection) -> Void)? = nil,
        _ handler: @escaping @Sendable (Connection) async throws -> Void, file: StaticString = #fileID,
        line: UInt = #line
    ) -> Promise<Void> {
        serve(
            on: group, balancing: balancing, maxConnections: maxConnections, maxLingering: maxLingering,
            onError: onError,
            { connection async throws -> Void in
                _ = try await connection.begin(server, file, line).value
                try await handler(connection)
            }, file: file, line: line)
    }
}
