import Glibc
import Reactor

// Serving with async handlers, until the process is told to stop.

extension Listener {
    /// As `serve(untilStoppedBy:)`, with an async handler: at the deadline and at the second signal its task is
    /// cancelled.
    ///
    /// ```swift
    /// let served = listener.serve(untilStoppedBy: [SIGTERM, SIGINT], drainTimeout: .seconds(10)) { connection in
    ///     for try await line in connection.lines { try await connection.write(line + "\n").value }
    /// }
    /// let result = try hang(served)
    /// ```
    ///
    /// - Parameters:
    ///   - signals: at least one.
    ///   - drainTimeout: how long the drain may take; see `drain(deadline:)`.
    ///   - maxConnections: as for `serve`.
    ///   - maxLingering: as for `serve`.
    ///   - onSignal: as for the form with promises.
    ///   - onError: as for `serve` with an async handler.
    ///   - handler: as for `serve` with an async handler.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: as the form with promises, and as `serve` with an async handler.
    public func serve(
        untilStoppedBy signals: [CInt], drainTimeout: Duration, maxConnections: Int = .max, maxLingering: Int? = nil,
        onSignal: ((CInt) -> Void)? = nil, onError: ((any Error, Connection) -> Void)? = nil,
        _ handler: @escaping @isolated(any) (Connection) async throws -> Void, file: StaticString = #fileID,
        line: UInt = #line
    ) -> Promise<DrainResult> {
        serve(untilStoppedBy: signals, drainTimeout, onSignal, file, line) {
            serve(
                maxConnections: maxConnections, maxLingering: maxLingering, onError: onError, handler, file: file,
                line: line)
        }
    }

    /// As `serve(on:untilStoppedBy:)`, with an async handler: at the deadline and at the second signal its task is
    /// cancelled.
    /// - Parameters:
    ///   - balancing: as for `serve(on:)`.
    ///   - signals: at least one.
    ///   - drainTimeout: how long the drain may take; see `drain(deadline:)`.
    ///   - maxConnections: as for `serve`.
    ///   - maxLingering: as for `serve`.
    ///   - onSignal: as for `serve(untilStoppedBy:)`; called on the listener's loop.
    ///   - onError: as for `serve(on:)` with an async handler.
    ///   - handler: as for `serve(on:)` with an async handler.
    ///   - group: the loops that run the handlers.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: as the form with promises, and as `serve(on:)` with an async handler.
    public func serve(
        on group: LoopGroup, balancing: LoopGroup.Balancing = .leastConnections, untilStoppedBy signals: [CInt],
        drainTimeout: Duration, maxConnections: Int = .max, maxLingering: Int? = nil,
        onSignal: ((CInt) -> Void)? = nil, onError: (@Sendable (any Error, Connection) -> Void)? = nil,
        _ handler: @escaping @isolated(any) @Sendable (Connection) async throws -> Void, file: StaticString = #fileID,
        line: UInt = #line
    ) -> Promise<DrainResult> {
        serve(untilStoppedBy: signals, drainTimeout, onSignal, file, line) {
            serve(
                on: group, balancing: balancing, maxConnections: maxConnections, maxLingering: maxLingering,
                onError: onError, handler, file: file, line: line)
        }
    }
}
