import Glibc
import Reactor

/// A TCP listener on this thread's loop.
///
/// ```swift
/// let listener = try Listener.bind("127.0.0.1:7000")
/// listener.serve(maxConnections: 10_000) { connection in
///     echo(connection)
/// }.catch { error in log(error) }
/// try EventLoop.current.run()
/// ```
///
/// Connections are taken with `serve`, or one by one with `accept`. Letting go of a listener closes it, unless it is serving
/// or an `accept` waits: then it lives until `close`. Trouble with a single connection never ends the
/// listener. Want of descriptors or memory (`EMFILE`, `ENFILE`, `ENOBUFS`, `ENOMEM`) makes it pause for 100 ms at a
/// time, reported once an episode as `LogEvent.acceptPaused`; clients wait in the backlog meanwhile.
public final class Listener: IOProducer {
    /// The address it listens on, with the real port where 0 was asked for.
    public let localAddress: SocketAddress
    /// How many connections `serve` has running.
    public private(set) var activeConnections = 0

    private let socket: Socket
    private let loop: EventLoop
    private var isClosed = false
    private var waiting: [Core] = []
    private var service: Service?
    private var backOff: EventLoop.Timer?
    private var isInTrouble = false
    private var isDraining = false

    private struct Service {
        let limit: Int
        let start: (Connection) -> Promise<Void>
        let promise: Core
    }

    /// How many connections are accepted in one turn, so that a storm of them leaves time for those that are there.
    private static var budget: Int { 64 }
    /// The same when it is closed with `drain`; more than a backlog holds, so that only an error for each could reach it.
    private static var drainBudget: Int { 65536 }
    private static var pause: Duration { .milliseconds(100) }

    private init(_ socket: Socket, _ address: SocketAddress, on loop: EventLoop) {
        self.socket = socket
        self.loop = loop
        localAddress = address
        // A watch of a descriptor that was closed before it was cancelled may have left its mark on the number.
        loop.forget(socket.fd)
    }

    // With the loop goes what has held us: the pause of `backOff`, or the handlers of connections that were running.
    deinit {
        if !isClosed { release() }
        let promises = waiting + (service.map { [$0.promise] } ?? [])
        let error = SystemError(.accept, ECANCELED, detail: "the loop has ended")
        for promise in promises { promise.reject(error) }
    }

    /// Listens on `address`, from now on: clients may connect before anybody accepts.
    ///
    /// The port is free again for the next listener as soon as this one is closed (SO_REUSEADDR). An IPv6 listener takes
    /// IPv6 only, so `0.0.0.0` and `[::]` may listen on one port.
    /// - Parameter backlog: how many connections may wait to be accepted; the kernel cuts it to `net.core.somaxconn`.
    /// - Throws: `SystemError` that names call and address: `EADDRINUSE`, `EACCES` for a privileged port,
    ///   `EADDRNOTAVAIL` for an address that is not this machine's. See bind(2) and listen(2).
    @available(*, noasync, message: "an async function has no loop of its own")
    public static func bind(_ address: SocketAddress, backlog: Int = 4096) throws(SystemError) -> Listener {
        let loop = EventLoop.ofThisThread
        let socket = try Socket.listening(on: address, backlog: backlog, loop.kernel)
        return Listener(socket, socket.localAddress ?? address, on: loop)
    }

    /// Listens on `127.0.0.1:7000`, `[::1]:7000` or `localhost:7000`; see the form with an address. Also throws
    /// `SocketAddress.ParseError`.
    @available(*, noasync, message: "an async function has no loop of its own")
    public static func bind(_ address: String, backlog: Int = 4096) throws -> Listener {
        try bind(try SocketAddress(address), backlog: backlog)
    }

    // MARK: Taking connections

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
        if service != nil { return Promise(error: SystemError(.accept, EBUSY, detail: "serve is running")) }
        let core = IOPromise(Connection.self, self)
        waiting.append(core)
        updateInterest()
        return Promise(core)
    }

    /// Accepts connections until the listener is closed, and calls `handler` with each. A connection whose handler's
    /// promise has settled, whichever way, is closed.
    ///
    /// A rejection ends that connection only and is not reported: attach a `catch` in the handler to see it.
    /// - Parameter maxConnections: how many may run at a time; the next ones wait in the backlog. A connection counts until
    ///   its descriptor is closed, which may be a while after its handler is done: see `Connection.close`.
    /// - Returns: a promise that is fulfilled when the listener has been closed and the last connection is done, and
    ///   rejected with the `SystemError` that ended the listener: `EBADF`, `EINVAL` or `ENOTSOCK` of `accept4`.
    ///   Rejected at once with `EBADF` after `close`, `EBUSY` if `accept` or `serve` is running, `EINVAL` if
    ///   `maxConnections` is below one. Cancelling it closes the listener; connections that run go on.
    public func serve<Done: Thenable>(
        maxConnections: Int = .max, _ handler: @escaping (Connection) throws -> Done,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        let core = startService(maxConnections, handler).core
        return Promise(core.traced(root: "serve", Promise<Void>.self, file, line))
    }

    private func startService<Done: Thenable>(
        _ maxConnections: Int, _ handler: @escaping (Connection) throws -> Done
    ) -> Promise<Void> {
        if isClosed { return Promise(error: SystemError(.accept, EBADF, detail: "the listener is closed")) }
        if service != nil || !waiting.isEmpty {
            return Promise(error: SystemError(.accept, EBUSY, detail: "the listener is in use"))
        }
        guard maxConnections > 0 else {
            return Promise(error: SystemError(.accept, EINVAL, detail: "maxConnections: \(maxConnections)"))
        }
        let core = IOPromise(Void.self, self)
        let start = { (connection: Connection) in
            firstly { try handler(connection) }.asVoid().ensureThen { connection.close() }
        }
        service = Service(limit: maxConnections, start: start, promise: core)
        updateInterest()
        return Promise(core)
    }

    /// Stops listening. Connections that run go on; a waiting `accept` is rejected with `ECANCELED`.
    ///
    /// - Parameter drain: whether connections that already wait in the backlog are accepted first; without it the
    ///   kernel resets them. Only for `serve`, and up to its limit.
    public func close(drain: Bool = false) {
        // Within a handler that the draining has started it is under way already.
        if isClosed || drain && isDraining { return }
        if drain, service != nil {
            isDraining = true
            for _ in 0..<Self.drainBudget where !isClosed && hasRoom {
                guard acceptOne() else { break }
            }
        }
        if !isClosed { end(nil) }
    }

    private var hasRoom: Bool { service.map { activeConnections < $0.limit } ?? !waiting.isEmpty }

    /// Answers whether there may be more.
    private func acceptOne() -> Bool {
        var storage = sockaddr_storage()
        let result = loop.kernel.accept(socket.fd, &storage)
        guard result < 0 else {
            isInTrouble = false
            loop.forget(CInt(result))
            deliver(Connection(Socket(CInt(result), loop.kernel), peer: SocketAddress(storage), on: loop))
            return true
        }
        switch CInt(-result) {
        case EAGAIN: return false
        case EMFILE, ENFILE, ENOBUFS, ENOMEM:
            backOff(SystemError(.accept, CInt(-result), detail: localAddress.description))
            return false
        case EBADF, EINVAL, ENOTSOCK, EOPNOTSUPP:
            end(SystemError(.accept, CInt(-result), detail: localAddress.description))
            return false
        // Of one connection that failed before it was accepted; accept(2) lists the network errors that may come here.
        default: return true
        }
    }

    private func deliver(_ connection: Connection) {
        guard let service else { return waiting.removeFirst().fulfill(connection) }
        activeConnections += 1
        service.start(connection).recover { _ in }.done { [self] in
            activeConnections -= 1
            updateInterest()
            finishIfDone()
        }
    }

    private func backOff(_ error: SystemError) {
        let isNew = !isInTrouble
        isInTrouble = true
        if isNew { conf.log(.acceptPaused(error)) }
        // Who was told may have closed it.
        if isClosed { return }
        backOff = loop.schedule(after: Self.pause) { [self] in
            backOff = nil
            updateInterest()
        }
        updateInterest()
    }

    // MARK: Ending

    private func end(_ error: SystemError?) {
        release()
        let refusal = error ?? SystemError(.accept, ECANCELED, detail: "the listener was closed")
        let refused = waiting
        waiting = []
        for promise in refused { promise.reject(refusal) }
        guard let error, let service else { return finishIfDone() }
        self.service = nil
        service.promise.reject(error)
    }

    private func finishIfDone() {
        guard isClosed, activeConnections == 0, let service else { return }
        self.service = nil
        service.promise.fulfill(())
    }

    private func release() {
        isClosed = true
        backOff?.cancel()
        loop.forget(socket.fd)
        loop.kernel.close(socket.fd)
    }
}

extension Listener: ReadinessHandler {
    package func loopIsEnding() {
        if !isClosed { end(SystemError(.accept, ECANCELED, detail: "the loop has ended")) }
    }

    package func descriptorIsReady(_ ready: Interest) {
        // Before it calls out: a handler may turn the loop.
        updateInterest()
        for _ in 0..<Self.budget where !isClosed && hasRoom {
            guard acceptOne() else { break }
        }
        if !isClosed { updateInterest() }
    }

    /// An `accept` was cancelled, or `serve`.
    func stop(_ promise: Core) -> Bool {
        if let service, service.promise === promise {
            self.service = nil
            if !isClosed { release() }
            return true
        }
        guard let index = waiting.firstIndex(where: { $0 === promise }) else { return false }
        waiting.remove(at: index)
        updateInterest()
        return true
    }

    private func updateInterest() {
        guard !isClosed else { return }
        do throws(SystemError) {
            try loop.setInterest(hasRoom && backOff == nil ? .reading : [], of: socket.fd, handler: self)
        } catch {
            end(error)
        }
    }
}
