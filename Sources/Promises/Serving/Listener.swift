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
/// it, unless it is serving or an `accept` waits: then it lives until `close`.
///
/// An error of a single connection never ends the listener. These conditions make it pause for 100 ms at a time, while
/// clients wait in the backlog; each episode is reported once, as `LogEvent.acceptPaused`:
/// - a shortage of descriptors or memory (`EMFILE`, `ENFILE`, `ENOBUFS`, `ENOMEM`);
/// - 64 errors of single connections in a row: a security module or seccomp may refuse every one (`EPERM`, `EACCES`,
///   `ENOSYS`).
public final class Listener {
    /// The addresses that it listens on, in the given order, with the actual ports where port 0 was given.
    public let localAddresses: [SocketAddress]
    /// The first of `localAddresses`.
    public var localAddress: SocketAddress { localAddresses[0] }
    /// How many connections of `serve` are active, on all loops: their handlers have not finished. `maxConnections`
    /// limits them.
    public var activeConnections: Int { tracker.activeCount + (group?.activeCount ?? 0) }
    /// How many connections of `serve` linger, on all loops: their handlers have finished, and their descriptors are
    /// not closed yet. `maxLingering` limits them.
    public var lingeringConnections: Int { tracker.lingering.count + (group?.lingeringCount ?? 0) }
    /// How many connections are active or linger.
    var openConnections: Int { tracker.running.count + (group?.openCount ?? 0) }

    /// How many connections were reset because of `ServeOptions.memoryLimit`, on all loops.
    public var evictedConnections: Int { counters.evicted }

    let loop: EventLoop
    private let acceptSockets: [AcceptSocket]
    let takers = AcceptQueue()
    private var phase = Phase.listening
    var isClosed: Bool { phase == .closed }
    private var pause = AcceptPause()
    /// Whether a drain leaves the backlog to the process that comes next.
    var leavesBacklog = false
    var drain: ListenerDrain?
    /// Whether `drain` has been called.
    public var isDraining: Bool { drain != nil }
    let counters = DrainCounters()
    /// The connections that are served on the listener's own loop.
    let tracker: ConnectionTracker
    /// The connections that are served on a group of loops.
    var group: GroupServer?

    private enum Phase {
        case listening
        /// `close(drain: true)` is accepting the backlog.
        case takingBacklog
        case closed
    }

    /// How many connections are accepted in one turn, so that a burst of new ones leaves time for the existing ones.
    private static var budget: Int { 64 }
    /// How many connections `close(drain: true)` accepts: more than a backlog holds, so that only repeated errors could
    /// reach it.
    private static var drainBudget: Int { 65536 }

    /// - Parameter sockets: at least one.
    init(_ sockets: [ListeningSocket], on loop: EventLoop) {
        self.loop = loop
        localAddresses = sockets.map(\.address)
        acceptSockets = sockets.map(AcceptSocket.init)
        tracker = ConnectionTracker(on: loop, counters)
        takers.listener = self
        // A watch of a descriptor that was closed before it was cancelled may have left its mark on the number.
        for acceptSocket in acceptSockets { loop.forget(acceptSocket.socket.fd) }
    }

    // When the loop ends, it releases what retained this listener: the timer of `pause`, or the handlers of active
    // connections.
    deinit {
        if loop.isOwnedByThisThread && !isClosed { release() }
        loop.performCleanup {
            [loop, acceptSockets, pause, drain, takers, active = openConnections, isOpen = !isClosed, counters] in
            // If it is closed, no socket waits: the socket would retain it.
            if isOpen {
                if !loop.hasEnded { pause.timer?.cancel() }
                for acceptSocket in acceptSockets { acceptSocket.close(on: loop) }
            }
            var drain = drain
            drain?.finish(counters, active: active)?()
            takers.refuseAll(SystemError(.accept, ECANCELED, detail: "the loop has ended"))
        }
    }

    /// Whether an `accept` waits for a connection, or `serve` is below its limit.
    private var hasRoom: Bool { takers.service.map { activeConnections < $0.limit } ?? !takers.waiting.isEmpty }

    /// Stops listening. Active connections continue; a waiting `accept` is rejected with `ECANCELED`. The file of a
    /// Unix listener is removed, if it is still the one that the listener has created.
    ///
    /// - Parameter drain: whether connections that already wait in the backlog are accepted first; otherwise the kernel
    ///   resets them. Only for `serve`, and up to its limit.
    public func close(drain: Bool = false) {
        // Called by a handler that this very drain has started: the drain continues.
        if isClosed || drain && phase == .takingBacklog { return }
        // (In a forked child the waiting clients belong to the parent.)
        if drain, takers.service != nil, !loop.kernel.isForked {
            phase = .takingBacklog
            for acceptSocket in acceptSockets { accept(on: acceptSocket, atMost: Self.drainBudget) }
        }
        if !isClosed { end(nil) }
    }

    // MARK: Accepting

    func acceptReady(on acceptSocket: AcceptSocket) {
        // Before any handler is called: it may turn the loop.
        updateInterest()
        accept(on: acceptSocket, atMost: Self.budget)
        if !isClosed { updateInterest() }
    }

    private func accept(on acceptSocket: AcceptSocket, atMost count: Int) {
        for _ in 0..<count where !isClosed && hasRoom {
            guard acceptOne(acceptSocket) else { break }
        }
    }

    /// - Returns: whether further clients may be waiting.
    private func acceptOne(_ acceptSocket: AcceptSocket) -> Bool {
        var storage = sockaddr_storage()
        let result = loop.kernel.accept(acceptSocket.socket.fd, &storage)
        if result >= 0 {
            pause.hasShortage = false
            acceptSocket.refusals = 0
            deliver(Accepted(fd: CInt(result), peer: SocketAddress(storage), isUnix: acceptSocket.address.isUnix))
            return true
        }
        let code = CInt(-result)
        switch pause.step(after: code, &acceptSocket.refusals) {
        case .acceptNext: return true
        case .wait: break
        case .pause(let isNew): pauseAccepting(acceptSocket.error(code), isNew: isNew)
        case .end: end(acceptSocket.error(code))
        }
        return false
    }

    private func deliver(_ accepted: Accepted) {
        if let service = takers.service { return service.start(accepted) }
        takers.waiting.removeFirst().fulfill(accepted.connection(on: loop))
    }

    private func pauseAccepting(_ error: SystemError, isNew: Bool) {
        if isNew { conf.log(.acceptPaused(error)) }
        // The log handler may have closed the listener.
        if isClosed { return }
        pause.timer?.cancel()
        pause.timer = loop.schedule(after: AcceptPause.length) { [self] in
            pause.timer = nil
            updateInterest()
        }
        updateInterest()
    }

    /// Each socket is registered exactly while there is room, and retains the listener exactly while it is registered.
    func updateInterest() {
        for acceptSocket in acceptSockets where !isClosed {
            let waits = hasRoom && pause.timer == nil
            acceptSocket.retainedListener = waits ? self : nil
            do throws(SystemError) {
                try loop.setInterest(waits ? .reading : [], of: acceptSocket.socket.fd, handler: acceptSocket)
            } catch {
                end(error)
            }
        }
    }

    // MARK: Ending

    func loopWillEnd() {
        if !isClosed { end(SystemError(.accept, ECANCELED, detail: "the loop has ended")) }
    }

    func end(_ error: SystemError?) {
        release()
        if let error { return takers.refuseAll(error) }
        if takers.service == nil {
            takers.refuseAll(SystemError(.accept, ECANCELED, detail: "the listener was closed"))
        }
        finishIfDone()
    }

    private func finishIfDone() {
        endGroupIfDone()
        if isClosed, openConnections == 0 { takers.endService()?.fulfill(drain?.result ?? DrainResult()) }
    }

    func release() {
        phase = .closed
        pause.timer.take()?.cancel()
        for acceptSocket in acceptSockets { acceptSocket.close(on: loop) }
        group?.close()
        endGroupIfDone()
    }

    private func endGroupIfDone() {
        guard isClosed, let service = group, service.openCount == 0 else { return }
        group = nil
        service.end()
    }
}

extension Listener: GroupListener {
    func connectionDidBeginLingering() { updateInterest() }

    func connectionDidEnd() {
        if openConnections == 0 { finishDrain() }
        updateInterest()
        finishIfDone()
    }

    func allLoopsDidEnd() {
        if !isClosed { end(SystemError(.accept, ECANCELED, detail: "all loops of the group have ended")) }
    }

    /// Connections on other loops continue, but will not be reported here any more.
    func listenerLoopDidEnd() {
        loopWillEnd()
        drain?.finish(counters, active: openConnections)?()
        takers.refuseAll(SystemError(.accept, ECANCELED, detail: "the loop has ended"))
    }
}
