import Promises
import Reactor
import ReactorLibc

/// A listener for stream connections, TCP or Unix, on this thread's loop.
///
/// ```swift
/// let listener = try Listener.bind("127.0.0.1:7000")
/// let served = listener.serve(.untilStopped) { connection in echo(connection) }
/// try hang(served)
/// ```
///
/// Take connections with `serve`, or one by one with `accept`. Releasing the last reference closes the listener. While
/// it is serving or an `accept` is pending, it stays alive until `close`.
///
/// An error of a single connection never ends the listener. Of the errors in accept(2), only `EBADF`, `EINVAL` and
/// `ENOTSOCK` do, because they concern the listening socket. Accepting pauses for 100 ms at a time, reported once per
/// episode as `LogEvent.acceptPaused`, for
/// - a shortage of descriptors or memory (`EMFILE`, `ENFILE`, `ENOBUFS`, `ENOMEM`);
/// - 64 consecutive errors of single connections, because a security module or seccomp may refuse all of them (`EPERM`,
///   `EACCES`, `ENOSYS`).
public final class Listener: CustomStringConvertible {
    /// The local addresses, in the given order, with the actual ports in place of port 0.
    public let localAddresses: [SocketAddress]
    /// `Listener(127.0.0.1:7000, [::1]:7000)`
    public var description: String { "Listener(\(localAddresses.map(\.description).joined(separator: ", ")))" }
    /// The first of `localAddresses`.
    public var localAddress: SocketAddress { localAddresses[0] }
    /// The number of `serve`'s active connections, on all loops: those whose handlers have not finished. Limited by
    /// `maxConnections`.
    public var activeConnections: Int { server?.counts.active ?? 0 }
    /// The number of `serve`'s lingering connections, on all loops: their handlers have finished, but their descriptors
    /// are open. Limited by `maxLingering`.
    public var lingeringConnections: Int { server?.counts.lingering ?? 0 }
    /// The number of connections, on all loops, that `ServeOptions.memoryLimit` has reset.
    public var evictedConnections: Int { state.counts.evicted }
    /// The number of clients that `ServeOptions.overflow` has refused.
    public var refusedConnections: Int { state.counts.refused }
    /// True when `drain` has been called and has accepted the backlog.
    public var isDraining: Bool { state.isDraining }

    let loop: EventLoop
    let acceptor: Acceptor
    // `@exclusivity(unchecked)`: one thread, and no foreign code runs during a change.
    @exclusivity(unchecked) var state = ListenerState()
    /// The pending calls of `accept`, in order; none while `serve` is running.
    @exclusivity(unchecked) var waiting = LinkedOrder<PromiseCore>()
    var server: Server?
    /// The promise of `serve`, until it settles, and the signals that stop it.
    var serving: PromiseCore?
    var signals: StopSignals?
    var deadline: EventLoop.Timer?
    lazy var drained = Guarantee<DrainResult>.pending()
    /// The registration of `loopWillEnd`, for a listener that the poller does not hold.
    private var ending = 0

    init(_ sockets: [ListeningSocket], on loop: EventLoop) {
        self.loop = loop
        localAddresses = sockets.map(\.address)
        acceptor = Acceptor(sockets, on: loop)
        ending = loop.whenEnding { [weak self] in self?.loopWillEnd() }
        InspectedObjects.add(self, ofLoop: loop.serial)
    }

    // No waiting call is left, because it would retain the listener.
    deinit {
        InspectedObjects.remove(self)
        loop.performCleanup { [loop, acceptor, ending] in
            acceptor.close()
            if !loop.hasEnded { loop.forgetEnding(ending) }
        }
    }

    /// Stops listening. Active connections continue, and a pending `accept` is rejected with `ECANCELED`. If the
    /// listener created the file of a Unix path, the file is removed.
    /// - Parameter drain: true to accept the connections in the backlog first, which the kernel would otherwise reset.
    ///   Works only for `serve`, and up to its limit.
    public func close(drain: Bool = false) {
        // In a forked child, the waiting clients belong to the parent.
        let withBacklog = drain && !loop.kernel.isForked
        change { $0.close(withBacklog: withBacklog) }
    }

    func fail(_ error: SystemError) { change { $0.fail(error) } }

    func loopWillEnd() { change { $0.loopWillEnd() } }
}

// MARK: Accepting

extension Listener: CancellableWork {
    /// True when an `accept` is pending, or when `serve` would serve or refuse another client.
    var takesClients: Bool {
        if state.isClosed { return false }
        return server?.takesClients ?? !waiting.isEmpty
    }

    func take(_ accepted: Accepted) {
        guard let server else {
            // A call is waiting: see `takesClients`.
            waiting.popFirst()?.fulfill(accepted.connection(on: loop))
            return
        }
        if !server.take(accepted) { failWithoutLoops() }
    }

    package func stop(_ promise: PromiseCore) -> Bool {
        if serving === promise {
            _ = takeServing()
            change { $0.close() }
            return true
        }
        guard waiting.remove(of: promise) != nil else { return false }
        acceptor.updateInterest(for: self)
        return true
    }

    func serverDidChange() {
        if server?.hasLostAllLoops == true { failWithoutLoops() }
        acceptor.updateInterest(for: self)
        change { $0.connectionsDidEnd() }
    }

    private func failWithoutLoops() {
        fail(SystemError(.accept, ECANCELED, detail: "all loops of the group have ended"))
    }
}
