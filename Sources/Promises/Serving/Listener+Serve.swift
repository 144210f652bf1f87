import Glibc
import Reactor

// Taking connections.

extension Listener {
    /// Waits for the next connection. Several calls are served in their order; a cancelled call is skipped.
    ///
    /// Rejected with a `SystemError` of `accept4`:
    /// - `EBADF` after `close`;
    /// - `ECANCELED` if `close` was called while it waited;
    /// - `EBUSY` while `serve` is running;
    /// - the error that ended the listener.
    ///
    /// - Parameters:
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a promise of the connection.
    @inlinable @inline(__always)
    public func accept(file: StaticString = #fileID, line: UInt = #line) -> Promise<Connection> {
        Promise(startAccept().core.traced(root: "accept", Promise<Connection>.self, file, line))
    }

    @usableFromInline
    func startAccept() -> Promise<Connection> {
        if isClosed { return Promise(refused: SystemError(.accept, EBADF, detail: "the listener is closed")) }
        if acceptQueue.service != nil {
            return Promise(refused: SystemError(.accept, EBUSY, detail: "serve is running"))
        }
        let core = IOPromise(Connection.self, acceptQueue)
        acceptQueue.waiting.append(core)
        updateInterest()
        return Promise(core)
    }

    /// Accepts connections until the listener is closed, and calls `handler` with each. A connection is closed when the
    /// promise of its handler has settled, with a value or an error.
    ///
    /// ```swift
    /// listener.serve(maxConnections: 10_000) { connection in
    ///     connection.forEachChunk { connection.write($0) }
    /// }.catch { error in log(error) }
    /// ```
    ///
    /// A rejection ends that connection only.
    /// - Parameters:
    ///   - maxConnections: how many connections may be active at once; further clients wait in the backlog. A
    ///     connection is active until its handler has finished. Closing it may take a while longer, see
    ///     `Connection.close`; during that time it counts as lingering.
    ///   - maxLingering: how many connections may linger at once, in addition to the active ones. One more ends the
    ///     connection that has lingered longest as by `close(linger: .zero)`, except while the listener is drained. The
    ///     default is `maxConnections`, but at least 64 and at most 1,024.
    ///   - onError: is called with the error of a handler and its connection; not for a cancellation, nor for a
    ///     connection that `drain` has ended. Without it errors are not reported.
    ///   - handler: handles one connection; called on the loop of the listener.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a promise that is fulfilled when the listener has been closed and the last connection has ended, and
    ///   rejected with the `SystemError` that ended the listener: `EBADF`, `EINVAL` or `ENOTSOCK` of `accept4`.
    ///   Rejected at once with
    ///   - `EBADF` after `close`;
    ///   - `EBUSY` if `accept` or `serve` is running;
    ///   - `EINVAL` if `maxConnections` is below one or `maxLingering` below zero.
    ///
    ///   Cancelling it closes the listener; active connections continue.
    public func serve<Done: Thenable>(
        maxConnections: Int = .max, maxLingering: Int? = nil, onError: ((any Error, Connection) -> Void)? = nil,
        _ handler: @escaping (Connection) throws -> Done, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        // Unowned: only the listener calls it.
        let service = startService(maxConnections, maxLingering) { [unowned self] accepted in
            tracker.serve(accepted.connection(on: loop), self, onError, handler)
        }
        if service.isPending { tracker.lingeringLimit = Self.lingeringLimit(maxLingering, maxConnections) }
        return Promise(service.core.traced(root: "serve", Promise<Void>.self, file, line))
    }

    /// - Parameter start: begins to serve an accepted socket.
    func startService(_ maxConnections: Int, _ maxLingering: Int?, _ start: @escaping (Accepted) -> Void) -> Promise<
        Void
    > {
        if isClosed { return Promise(refused: SystemError(.accept, EBADF, detail: "the listener is closed")) }
        if acceptQueue.service != nil || !acceptQueue.waiting.isEmpty {
            return Promise(refused: SystemError(.accept, EBUSY, detail: "the listener is in use"))
        }
        guard maxConnections > 0 else {
            return Promise(refused: SystemError(.accept, EINVAL, detail: "maxConnections: \(maxConnections)"))
        }
        if let maxLingering, maxLingering < 0 {
            return Promise(refused: SystemError(.accept, EINVAL, detail: "maxLingering: \(maxLingering)"))
        }
        let core = IOPromise(Void.self, acceptQueue)
        acceptQueue.service = AcceptQueue.Service(limit: maxConnections, start: start, promise: core)
        updateInterest()
        return Promise(core)
    }

    static func lingeringLimit(_ maxLingering: Int?, _ maxConnections: Int) -> Int {
        maxLingering ?? min(max(maxConnections, 64), 1024)
    }
}
