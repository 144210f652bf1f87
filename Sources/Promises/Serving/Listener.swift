import ReactorLibc
import Reactor

/// A listener for stream connections, TCP or Unix, on this thread's loop.
///
/// ```swift
/// let listener = try Listener.bind("127.0.0.1:7000")
/// let served = listener.serve(.untilStopped) { connection in echo(connection) }
/// try hang(served)
/// ```
///
/// Connections are taken with `serve`, or one by one with `accept`. Releasing the last reference to a listener closes
/// it, unless it is serving or an `accept` is pending: then it lives until `close`.
///
/// An error of a single connection never ends the listener. These conditions make it pause for 100 ms at a time, while
/// clients wait in the backlog; each episode is reported once, as `LogEvent.acceptPaused`:
/// - a shortage of descriptors or memory (`EMFILE`, `ENFILE`, `ENOBUFS`, `ENOMEM`);
/// - 64 errors of single connections in a row: a security module or seccomp may refuse every one (`EPERM`, `EACCES`,
///   `ENOSYS`).
public final class Listener: CustomStringConvertible {
    /// The addresses that it listens on, in the given order, with the actual ports in place of port 0.
    public let localAddresses: [SocketAddress]
    /// `Listener(127.0.0.1:7000, [::1]:7000)`, with the addresses that it listens on.
    public var description: String { "Listener(\(localAddresses.map(\.description).joined(separator: ", ")))" }
    /// The first of `localAddresses`.
    public var localAddress: SocketAddress { localAddresses[0] }
    /// The number of active connections of `serve` on all loops: their handlers have not finished. `maxConnections`
    /// limits them.
    public var activeConnections: Int { service?.server.open.active ?? 0 }
    /// The number of lingering connections of `serve` on all loops: their handlers have finished, and their descriptors
    /// are not closed yet. `maxLingering` limits them.
    public var lingeringConnections: Int { service?.server.open.lingering ?? 0 }
    var openConnections: Int {
        guard let open = service?.server.open else { return 0 }
        return open.active + open.lingering
    }

    /// The number of connections, on all loops, that were reset because of `ServeOptions.memoryLimit`.
    public var evictedConnections: Int { drain.counts.evicted }
    /// The number of clients refused because of `ServeOptions.overflow`.
    public var refusedConnections: Int { refused.total }

    let loop: EventLoop
    private let acceptor: Acceptor
    /// The waiting calls of `accept`, in order; none while `serve` is running.
    var waiting = LinkedOrder<PromiseCore>()
    /// The call of `serve`, until its last connection has ended.
    var service: Service?
    let refused = RefusedClients()
    var isClosed: Bool { acceptor.isClosed }
    /// Whether a drain leaves the backlog to the next process.
    var leavesBacklog = false
    let drain = Drain()
    /// `true` once `drain` has been called and has accepted the backlog.
    public var isDraining: Bool { drain.hasBegun }
    /// The identifier of `loopWillEnd`. Without it nobody would report the end of the loop to a listener that is not in
    /// the poller, because it is at its limit or pauses.
    private var ending = 0

    /// - Parameter sockets: at least one.
    init(_ sockets: [ListeningSocket], on loop: EventLoop) {
        self.loop = loop
        localAddresses = sockets.map(\.address)
        acceptor = Acceptor(sockets, on: loop)
        ending = loop.whenEnding { [weak self] in self?.loopWillEnd() }
    }

    // Nothing waits for it: a pending `accept`, or a connection of `serve`, would retain it.
    deinit {
        loop.performCleanup { [loop, acceptor, ending] in
            acceptor.close()
            if !loop.hasEnded { loop.forgetEnding(ending) }
        }
    }

    /// Stops listening. Active connections continue; a pending `accept` is rejected with `ECANCELED`. The file of a
    /// Unix listener is removed, if it is still the one that the listener has created.
    ///
    /// - Parameter drain: whether connections that already wait in the backlog are accepted first; otherwise the kernel
    ///   resets them. Only for `serve`, and up to its limit.
    public func close(drain: Bool = false) {
        if isClosed { return }
        // (In a forked child the waiting clients belong to the parent.)
        if drain, service != nil, !loop.kernel.isForked, !acceptor.acceptBacklog(for: self) { return }
        if !isClosed { end(nil) }
    }

    func updateInterest() { acceptor.updateInterest(for: self) }

    // MARK: Ending

    /// Stops listening.
    /// - Parameter error: rejects `serve`, which otherwise ends with its last connection.
    func end(_ error: SystemError?) {
        acceptor.close()
        service?.server.listenerDidClose()
        let refusal = error ?? SystemError(.accept, ECANCELED, detail: "the listener was closed")
        while let promise = waiting.popFirst() { promise.reject(refusal) }
        if let error { service?.finish()?.reject(error) }
        endServiceIfDone()
    }

    func endServiceIfDone() {
        guard isClosed, openConnections == 0 else { return }
        // Before it, so that `serve` gets the result too.
        finishDrain()
        guard let service = service.take() else { return }
        service.server.end()
        service.finish()?.fulfill(drain.result ?? DrainResult())
    }

    func loopWillEnd() {
        end(SystemError(.accept, ECANCELED, detail: "the loop has ended"))
        // Connections on other loops continue, but will not be reported here any more.
        drain.end(open: openConnections)
        service.take()?.server.end()
    }
}

// MARK: Accepting

extension Listener: IOProducer {
    /// Whether an `accept` waits for a connection, or `serve` is below its limit or refuses those beyond it.
    var hasRoom: Bool {
        guard let service else { return !waiting.isEmpty }
        return service.isBelowLimit || service.options.overflow != .wait
    }

    func take(_ accepted: Accepted) {
        guard let service else {
            // There is one: see `hasRoom`.
            waiting.popFirst()?.fulfill(accepted.connection(on: loop))
            return
        }
        if !service.isBelowLimit, case .refuse(let answer) = service.options.overflow {
            let limit = service.options.lingeringLimit()
            return refused.take(accepted.connection(on: loop), answer, limit: limit)
        }
        service.start(accepted)
    }

    func acceptReady(on socket: AcceptSocket) { acceptor.acceptReady(on: socket, for: self) }

    /// An `accept` or `serve` was cancelled.
    func stop(_ promise: PromiseCore) -> Bool {
        if let service, service.promise === promise {
            _ = service.finish()
            end(nil)
            return true
        }
        guard waiting.remove(of: promise) != nil else { return false }
        updateInterest()
        return true
    }
}

// MARK: Connections of serve

extension Listener: ConnectionKeeper {
    func connectionDidBeginLingering() { acceptor.roomMayHaveGrown(for: self) }

    func connectionDidClose() {
        acceptor.roomMayHaveGrown(for: self)
        endServiceIfDone()
    }

    func allLoopsDidEnd() {
        if !isClosed { end(SystemError(.accept, ECANCELED, detail: "all loops of the group have ended")) }
    }
}
