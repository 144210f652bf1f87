import Glibc
import Reactor

// Taking connections.

extension Listener {
    /// The next connection. Several calls are served in their order; one that is cancelled is passed over.
    ///
    /// Rejected with a `SystemError` of `accept4`: `EBADF` after `close`, `ECANCELED` if it came while waiting, `EBUSY`
    /// while `serve` is running, or the error that ended the listener.
    @inlinable @inline(__always)
    public func accept(file: StaticString = #fileID, line: UInt = #line) -> Promise<Connection> {
        Promise(startAccept().core.traced(root: "accept", Promise<Connection>.self, file, line))
    }

    @usableFromInline
    func startAccept() -> Promise<Connection> {
        if isClosed { return Promise(error: SystemError(.accept, EBADF, detail: "the listener is closed")) }
        if claims.service != nil { return Promise(error: SystemError(.accept, EBUSY, detail: "serve is running")) }
        let core = IOPromise(Connection.self, claims)
        claims.waiting.append(core)
        updateInterest()
        return Promise(core)
    }

    /// Accepts connections until the listener is closed, and calls `handler` with each. A connection whose handler's
    /// promise has settled, whichever way, is closed.
    ///
    /// A rejection ends that connection only.
    /// - Parameters:
    ///   - maxConnections: how many may run at a time; the next ones wait in the backlog. A connection counts until
    ///     its descriptor is closed, which may be a while after its handler is done: see `Connection.close`.
    ///   - onError: is called with the error of a handler and its connection; not for a cancellation, nor for a
    ///     connection that `drain` has ended. Without it errors are not reported.
    /// - Returns: a promise that is fulfilled when the listener has been closed and the last connection is done, and
    ///   rejected with the `SystemError` that ended the listener: `EBADF`, `EINVAL` or `ENOTSOCK` of `accept4`.
    ///   Rejected at once with `EBADF` after `close`, `EBUSY` if `accept` or `serve` is running, `EINVAL` if
    ///   `maxConnections` is below one. Cancelling it closes the listener; connections that run go on.
    public func serve<Done: Thenable>(
        maxConnections: Int = .max, onError: ((any Error, Connection) -> Void)? = nil,
        _ handler: @escaping (Connection) throws -> Done, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        let core = startService(maxConnections, onError, handler).core
        return Promise(core.traced(root: "serve", Promise<Void>.self, file, line))
    }

    private func startService<Done: Thenable>(
        _ maxConnections: Int, _ onError: ((any Error, Connection) -> Void)?,
        _ handler: @escaping (Connection) throws -> Done
    ) -> Promise<Void> {
        if isClosed { return Promise(error: SystemError(.accept, EBADF, detail: "the listener is closed")) }
        if claims.service != nil || !claims.waiting.isEmpty {
            return Promise(error: SystemError(.accept, EBUSY, detail: "the listener is in use"))
        }
        guard maxConnections > 0 else {
            return Promise(error: SystemError(.accept, EINVAL, detail: "maxConnections: \(maxConnections)"))
        }
        let core = IOPromise(Void.self, claims)
        let start = { (listener: Listener, connection: Connection, place: Int) -> Core in
            let work = firstly { try handler(connection) }.core
            let served = Served(listener: listener, place: place)
            guard let onError else { return work.derive(served, role: .runsWhenCancelled) }
            return work.derive(ServedAndReported(served: served, onError: onError), role: .runsWhenCancelled)
        }
        claims.service = ListenerClaims.Service(limit: maxConnections, start: start, promise: core)
        updateInterest()
        return Promise(core)
    }
}

// One core a connection, and not a chain of operators: it is there for as long as the connection.

/// What `serve` waits for: the end of a handler, whichever it is. Then the connection is closed, and when that is done
/// its place is free. Fits into the core that waits for it; does not ask for the value, and so need not know its type.
private struct Served: Operation {
    typealias Input = Void
    typealias Output = Void
    let listener: Listener
    let place: Int

    func run(_ source: Source<Void>, _ core: Core) {
        if let connection = listener.running[place]?.connection {
            _ = connection.close().core.derive(ServiceIsDone(listener: listener, place: place))
        }
        core.finish(())
    }
}

/// The same with somebody to tell of an error, in a block of its own.
private struct ServedAndReported: Operation {
    typealias Input = Void
    typealias Output = Void
    let served: Served
    let onError: (any Error, Connection) -> Void

    func run(_ source: Source<Void>, _ core: Core) {
        if !source.isFulfilled { report(source.error) }
        served.run(source, core)
    }

    private func report(_ error: any Error) {
        let listener = served.listener
        guard !error.isCancelled, let connection = listener.running[served.place]?.connection else { return }
        if listener.drain?.hasEnded(connection) != true { onError(error, connection) }
    }
}

/// The descriptor of a connection that was served is closed.
private struct ServiceIsDone: Operation {
    typealias Input = Void
    typealias Output = Void
    let listener: Listener
    let place: Int

    func run(_ source: Source<Void>, _ core: Core) {
        listener.isDone(place)
        core.finish(())
    }
}
