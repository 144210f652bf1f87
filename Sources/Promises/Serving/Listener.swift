import Glibc
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
    public var activeConnections: Int { server?.open.active ?? 0 }
    /// The number of lingering connections of `serve` on all loops: their handlers have finished, and their descriptors
    /// are not closed yet. `maxLingering` limits them.
    public var lingeringConnections: Int { server?.open.lingering ?? 0 }
    var openConnections: Int {
        guard let open = server?.open else { return 0 }
        return open.active + open.lingering
    }

    /// The number of connections, on all loops, that were reset because of `ServeOptions.memoryLimit`.
    public var evictedConnections: Int { drain.counts.evicted }
    /// The number of clients refused because of `ServeOptions.overflow`.
    public private(set) var refusedConnections = 0

    let loop: EventLoop
    private let acceptor: Acceptor
    let takers = AcceptQueue()
    var isClosed: Bool { acceptor.isClosed }
    /// Whether a drain leaves the backlog to the next process.
    var leavesBacklog = false
    let drain = Drain()
    /// `true` once `drain` has been called.
    public var isDraining: Bool { drain.hasBegun }
    /// Serves the connections, from the call of `serve` until the last one has ended.
    private(set) var server: (any ConnectionServer)?
    /// Present if clients beyond the limit of `serve` are refused.
    private(set) var refused: RefusedClients?

    /// - Parameter sockets: at least one.
    init(_ sockets: [ListeningSocket], on loop: EventLoop) {
        self.loop = loop
        localAddresses = sockets.map(\.address)
        acceptor = Acceptor(sockets, on: loop)
        takers.listener = self
    }

    // When the loop ends, it releases what retained this listener: the timer of a pause, or the handlers of active
    // connections.
    deinit {
        if loop.isOwnedByThisThread { release() }
        loop.performCleanup { [acceptor, drain, takers, open = openConnections] in
            acceptor.close()
            drain.end(open: open)
            takers.refuseAll(SystemError(.accept, ECANCELED, detail: "the loop has ended"))
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
        if drain, takers.service != nil, !loop.kernel.isForked, !acceptor.acceptBacklog(for: self) { return }
        if !isClosed { end(nil) }
    }

    func begin(_ server: any ConnectionServer, _ refused: RefusedClients?) {
        self.server = server
        self.refused = refused
        server.begin(for: self)
        updateInterest()
    }

    func updateInterest() { acceptor.updateInterest(for: self) }

    // MARK: Ending

    func end(_ error: SystemError?) {
        release()
        if let error { return takers.refuseAll(error) }
        if takers.service == nil {
            takers.refuseAll(SystemError(.accept, ECANCELED, detail: "the listener was closed"))
        }
        finishIfDone()
    }

    private func finishIfDone() {
        endServerIfDone()
        if isClosed, openConnections == 0 { takers.endService()?.fulfill(drain.result ?? DrainResult()) }
    }

    private func release() {
        acceptor.close()
        server?.listenerDidClose()
        endServerIfDone()
    }

    private func endServerIfDone() {
        guard isClosed, let server, openConnections == 0 else { return }
        self.server = nil
        server.end()
    }
}

// MARK: Accepting

extension Listener {
    /// Whether an `accept` waits for a connection, or `serve` is below its limit or refuses those beyond it.
    var hasRoom: Bool {
        if takers.service == nil { return !takers.waiting.isEmpty }
        return activeConnections < takers.limit || refused != nil
    }

    func take(_ accepted: Accepted) {
        if let start = takers.start {
            guard let refused, activeConnections >= takers.limit else { return start(accepted) }
            refusedConnections += 1
            return refused.take(accepted.connection(on: loop))
        }
        takers.waiting.removeFirst().fulfill(accepted.connection(on: loop))
    }

    func acceptReady(on socket: AcceptSocket) { acceptor.acceptReady(on: socket, for: self) }

    func loopWillEnd() {
        if !isClosed { end(SystemError(.accept, ECANCELED, detail: "the loop has ended")) }
    }

    func serveWasCancelled() {
        if !isClosed { release() }
    }
}

// MARK: Connections of serve

extension Listener: ConnectionKeeper {
    func connectionDidBeginLingering() { acceptor.roomMayHaveGrown(for: self) }

    func connectionDidEnd() {
        if openConnections == 0 { finishDrain() }
        acceptor.roomMayHaveGrown(for: self)
        finishIfDone()
    }

    func allLoopsDidEnd() {
        if !isClosed { end(SystemError(.accept, ECANCELED, detail: "all loops of the group have ended")) }
    }

    /// Connections on other loops continue, but will not be reported here any more.
    func listenerLoopDidEnd() {
        loopWillEnd()
        drain.end(open: openConnections)
        takers.refuseAll(SystemError(.accept, ECANCELED, detail: "the loop has ended"))
    }
}
