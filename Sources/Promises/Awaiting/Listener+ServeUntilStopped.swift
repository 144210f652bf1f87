import Glibc
import Reactor

extension Listener {
    /// Serves until the process is told to stop, drains the connections, and returns what became of them. Drives this
    /// thread's loop meanwhile, as `hang`.
    ///
    /// ```swift
    /// let listener = try Listener.bind("127.0.0.1:7000")
    /// let result = try listener.serveUntilStopped(drainTimeout: .seconds(10)) { connection in
    ///     connection.forEachChunk { connection.write($0) }
    /// }
    /// ```
    ///
    /// - Parameter signals: the signals that stop the server.
    /// - Parameter drainTimeout: how long the drain may take before the remaining connections are aborted.
    /// - Parameter maxConnections: how many connections are served at a time; as for `serve`.
    /// - Parameter maxLingering: how many closed connections may still wait for their peer to read; as for `serve`.
    /// - Parameter onSignal: is called with each signal; as for `serve(untilStoppedBy:)`.
    /// - Parameter onError: is called with the error of a handler, and its connection; see `serve`.
    /// - Parameter handler: handles one connection; called on the loop of the listener.
    /// - Parameter file: the file that reports name; the caller's by default.
    /// - Parameter line: the line that reports name.
    /// - Returns: as `serve(untilStoppedBy:)`, which describes the other parameters.
    /// - Throws: as that one rejects, and as `hang`.
    @available(*, noasync, message: "an async function must not block its thread; await serve(untilStoppedBy:)")
    @discardableResult
    public func serveUntilStopped<Done: Thenable>(
        by signals: [CInt] = [SIGTERM, SIGINT], drainTimeout: Duration, maxConnections: Int = .max,
        maxLingering: Int? = nil, onSignal: ((CInt) -> Void)? = nil, onError: ((any Error, Connection) -> Void)? = nil,
        _ handler: @escaping (Connection) throws -> Done, file: StaticString = #fileID, line: UInt = #line
    ) throws -> DrainResult {
        let served = serve(
            untilStoppedBy: signals, drainTimeout: drainTimeout, maxConnections: maxConnections,
            maxLingering: maxLingering, onSignal: onSignal, onError: onError, handler, file: file, line: line)
        return try hang(served, file, line)
    }

    /// As `serveUntilStopped`, with an async handler.
    ///
    /// ```swift
    /// let result = try listener.serveUntilStopped(drainTimeout: .seconds(10)) { connection in
    ///     for try await line in connection.lines { try await connection.write(line + "\n").value }
    /// }
    /// ```
    ///
    /// - Parameter signals: the signals that stop the server.
    /// - Parameter drainTimeout: how long the drain may take before the remaining connections are aborted.
    /// - Parameter maxConnections: how many connections are served at a time; as for `serve`.
    /// - Parameter maxLingering: how many closed connections may still wait for their peer to read; as for `serve`.
    /// - Parameter onSignal: is called with each signal; as for `serve(untilStoppedBy:)`.
    /// - Parameter onError: is called with the error of a handler, and its connection; see `serve`.
    /// - Parameter handler: handles one connection; called on the loop of the listener.
    /// - Parameter file: the file that reports name; the caller's by default.
    /// - Parameter line: the line that reports name.
    /// - Returns: as `serve(untilStoppedBy:)` with an async handler, which describes the other parameters.
    /// - Throws: as that one rejects, and as `hang`.
    @available(*, noasync, message: "an async function must not block its thread; await serve(untilStoppedBy:)")
    @discardableResult
    public func serveUntilStopped(
        by signals: [CInt] = [SIGTERM, SIGINT], drainTimeout: Duration, maxConnections: Int = .max,
        maxLingering: Int? = nil, onSignal: ((CInt) -> Void)? = nil, onError: ((any Error, Connection) -> Void)? = nil,
        _ handler: @escaping @isolated(any) (Connection) async throws -> Void, file: StaticString = #fileID,
        line: UInt = #line
    ) throws -> DrainResult {
        let served = serve(
            untilStoppedBy: signals, drainTimeout: drainTimeout, maxConnections: maxConnections,
            maxLingering: maxLingering, onSignal: onSignal, onError: onError, handler, file: file, line: line)
        return try hang(served, file, line)
    }
}
