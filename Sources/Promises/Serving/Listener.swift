import Glibc
import Reactor

/// A listener for stream connections, TCP or Unix, on this thread's loop.
///
/// ```swift
/// let listener = try Listener.bind("127.0.0.1:7000")
/// listener.serve(maxConnections: 10_000) { connection in
///     echo(connection)
/// }.catch { error in log(error) }
/// try EventLoop.current.run()
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

    /// Whether clients that connect while the process has no free descriptor (`EMFILE`) are refused. False by default:
    /// they wait in the backlog until a descriptor is free.
    ///
    /// Refusing a client takes a descriptor for a moment, so while this is true the listener keeps one in reserve. When
    /// `accept4` fails with `EMFILE`, the listener closes the reserve, accepts the waiting clients and closes each at
    /// once, which a client sees as an end or a reset, and opens the reserve again. At most 512 clients of each address
    /// are refused in this way before the pause of 100 ms, which is made and reported as without this setting.
    ///
    /// Refuse clients where they can turn to another server. Where there is none, waiting is better for a client than
    /// being told to try again. Clients beyond `maxConnections` wait in any case.
    public var refusesWithoutDescriptors = false {
        didSet { if refusesWithoutDescriptors { openReserve() } else { closeReserve() } }
    }
    /// How many clients were refused because no descriptor was free.
    public internal(set) var refusedConnections = 0

    /// How many bytes the connections of `serve` may hold together: input that no read has consumed, and writes that the
    /// kernel has not taken, as `writeQueueLimit` counts them. `nil`, the default, means no limit. Set it before `serve`.
    /// With a group, each loop has an equal share.
    ///
    /// When they hold more, at the end of a turn, those that hold the most are reset until seven eighths are held: what
    /// waits for such a connection is rejected with `ENOBUFS`, which `onError` gets, and `closed` reports it.
    /// `evictedConnections` counts them. The others are served on as before: to read or to accept no more would stop
    /// every client for the sake of those that hold the memory, and often what frees it is the rest of a request.
    public var memoryLimit: Int? {
        didSet { tracker.limitMemory(to: memoryLimit) }
    }
    /// How many connections were reset because of `memoryLimit`, on all loops.
    public var evictedConnections: Int { counters.evicted }

    let loop: EventLoop
    let acceptSockets: [AcceptSocket]
    let acceptQueue = AcceptQueue()
    var isClosed = false
    /// Whether `close(drain: true)` is accepting the backlog.
    private var takesBacklog = false
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
    private var backOff: EventLoop.Timer?
    private var hasShortage = false
    /// The descriptor in reserve, which is closed to accept the clients that are refused.
    var reserve: CInt?

    /// How many connections are accepted in one turn, so that a burst of new ones leaves time for the existing ones.
    private static var budget: Int { 64 }
    /// How many connections `close(drain: true)` accepts: more than a backlog holds, so that only repeated errors could
    /// reach it.
    private static var drainBudget: Int { 65536 }
    private static var pause: Duration { .milliseconds(100) }

    /// - Parameter sockets: at least one.
    init(_ sockets: [ListeningSocket], on loop: EventLoop) {
        self.loop = loop
        localAddresses = sockets.map(\.address)
        acceptSockets = sockets.map(AcceptSocket.init)
        tracker = ConnectionTracker(on: loop, counters)
        acceptQueue.listener = self
        // A watch of a descriptor that was closed before it was cancelled may have left its mark on the number.
        for acceptSocket in acceptSockets { loop.forget(acceptSocket.socket.fd) }
    }

    // When the loop ends, it releases what retained this listener: the timer of `backOff`, or the handlers of active
    // connections.
    deinit {
        if loop.isOwnedByThisThread && !isClosed { release() }
        loop.performCleanup {
            [loop, acceptSockets, backOff, reserve, drain, acceptQueue, active = openConnections, isOpen = !isClosed] in
            // If it is closed, no socket waits: the socket would retain it.
            if isOpen {
                if !loop.hasEnded { backOff?.cancel() }
                for acceptSocket in acceptSockets { acceptSocket.close(on: loop) }
                if let reserve { loop.closeDescriptor(reserve) }
            }
            drain?.finish(active: active)
            acceptQueue.refuseAll(SystemError(.accept, ECANCELED, detail: "the loop has ended"))
        }
    }

    /// Whether an `accept` waits for a connection, or `serve` is below its limit.
    var hasRoom: Bool { acceptQueue.service.map { activeConnections < $0.limit } ?? !acceptQueue.waiting.isEmpty }

    /// Stops listening. Active connections continue; a waiting `accept` is rejected with `ECANCELED`. The file of a
    /// Unix listener is removed, if it is still the one that the listener has created.
    ///
    /// - Parameter drain: whether connections that already wait in the backlog are accepted first; otherwise the kernel
    ///   resets them. Only for `serve`, and up to its limit.
    public func close(drain: Bool = false) {
        // Called by a handler that this very drain has started: the drain continues.
        if isClosed || drain && takesBacklog { return }
        // (In a forked child the waiting clients belong to the parent.)
        if drain, acceptQueue.service != nil, !loop.kernel.isForked {
            takesBacklog = true
            for acceptSocket in acceptSockets {
                for _ in 0..<Self.drainBudget where !isClosed && hasRoom {
                    guard acceptOne(acceptSocket) else { break }
                }
            }
        }
        if !isClosed { end(nil) }
    }

    // MARK: Accepting

    func acceptReady(on acceptSocket: AcceptSocket) {
        // Before any handler is called: it may turn the loop.
        updateInterest()
        for _ in 0..<Self.budget where !isClosed && hasRoom {
            guard acceptOne(acceptSocket) else { break }
        }
        if !isClosed { updateInterest() }
    }

    /// - Returns: whether further clients may be waiting.
    private func acceptOne(_ acceptSocket: AcceptSocket) -> Bool {
        var storage = sockaddr_storage()
        let result = loop.kernel.accept(acceptSocket.socket.fd, &storage)
        guard result < 0 else {
            hasShortage = false
            acceptSocket.refusals = 0
            if refusesWithoutDescriptors { openReserve() }
            deliver(Accepted(fd: CInt(result), peer: SocketAddress(storage), isUnix: acceptSocket.address.isUnix))
            return true
        }
        switch CInt(-result) {
        case EAGAIN:
            acceptSocket.refusals = 0
            return false
        case EMFILE, ENFILE, ENOBUFS, ENOMEM:
            let isNew = !hasShortage
            hasShortage = true
            backOff(SystemError(.accept, CInt(-result), detail: acceptSocket.address.description), isNew: isNew)
            return false
        case EBADF, EINVAL, ENOTSOCK, EOPNOTSUPP:
            end(SystemError(.accept, CInt(-result), detail: acceptSocket.address.description))
            return false
        // Errors of one connection that failed before it was accepted; accept(2) lists the network errors that may
        // occur here.
        default:
            acceptSocket.refusals += 1
            if acceptSocket.refusals < Self.budget { return true }
            // A connection that is refused before it is taken out of the backlog stays there: the next call would find
            // it again.
            let error = SystemError(.accept, CInt(-result), detail: acceptSocket.address.description)
            backOff(error, isNew: acceptSocket.refusals == Self.budget)
            return false
        }
    }

    private func deliver(_ accepted: Accepted) {
        if let service = acceptQueue.service { return service.start(accepted) }
        acceptQueue.waiting.removeFirst().fulfill(accepted.connection(on: loop))
    }

    private func backOff(_ error: SystemError, isNew: Bool) {
        if isNew { conf.log(.acceptPaused(error)) }
        // The log handler may have closed the listener.
        if isClosed { return }
        if error.code == EMFILE { refuseWaitingClients() }
        backOff?.cancel()
        backOff = loop.schedule(after: Self.pause) { [self] in
            backOff = nil
            updateInterest()
        }
        updateInterest()
    }

    /// Each socket is registered exactly while there is room, and retains the listener exactly while it is registered.
    func updateInterest() {
        for acceptSocket in acceptSockets where !isClosed {
            let waits = hasRoom && backOff == nil
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
        if let error { return acceptQueue.refuseAll(error) }
        if acceptQueue.service == nil {
            acceptQueue.refuseAll(SystemError(.accept, ECANCELED, detail: "the listener was closed"))
        }
        finishIfDone()
    }

    func finishIfDone() {
        endGroupIfDone()
        guard isClosed, openConnections == 0, let service = acceptQueue.service else { return }
        acceptQueue.service = nil
        service.promise.fulfill(())
    }

    func release() {
        isClosed = true
        backOff?.cancel()
        backOff = nil
        closeReserve()
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

extension Listener: ConnectionKeeper {
    func connectionDidBeginLingering() { updateInterest() }

    func connectionDidEnd() {
        if let drain, openConnections == 0 { drain.finish(active: 0) }
        updateInterest()
        finishIfDone()
    }
}
