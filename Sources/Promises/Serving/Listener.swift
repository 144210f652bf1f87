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
/// Connections are taken with `serve`, or one by one with `accept`. Letting go of a listener closes it, unless it is serving
/// or an `accept` waits: then it lives until `close`. Trouble with a single connection never ends the
/// listener. A shortage of descriptors or memory (`EMFILE`, `ENFILE`, `ENOBUFS`, `ENOMEM`) makes it pause for 100 ms at a
/// time, reported once an episode as `LogEvent.acceptPaused`; clients wait in the backlog meanwhile. So does the 64th error
/// in a row of single connections: a security module or seccomp may refuse every one (`EPERM`, `EACCES`, `ENOSYS`).
public final class Listener {
    /// The addresses it listens on, in the order in which they were given, with the real ports where 0 was asked for.
    public let localAddresses: [SocketAddress]
    /// The first of them.
    public var localAddress: SocketAddress { localAddresses[0] }
    /// How many connections `serve` has running, on whatever loops: those whose handlers are not done. `maxConnections` bounds
    /// them.
    public var activeConnections: Int { branch.activeCount + (group?.activeCount ?? 0) }
    /// How many connections of `serve` have a handler that is done and a descriptor that is not closed yet, on whatever loops.
    /// `maxLingering` bounds them.
    public var lingeringConnections: Int { branch.lingering.count + (group?.lingeringCount ?? 0) }
    /// Both.
    var openConnections: Int { branch.running.count + (group?.openCount ?? 0) }

    /// Whether clients that come while the process has no descriptor left (`EMFILE`) are refused. False by default: they wait in
    /// the backlog until there is one.
    ///
    /// To refuse a client takes a descriptor for the moment, so while this is true the listener keeps one in reserve. When
    /// `accept4` fails with `EMFILE`, it closes the reserve, accepts the clients that wait and closes each at once, which a
    /// client sees as an end or a reset, and opens the reserve again. At most 512 clients of each address are refused that way
    /// before the pause of 100 ms, which is made and reported as without this.
    ///
    /// Refuse where a refused client turns to another server. Where there is none, a client that waits is better off than one
    /// that is told to try again. Clients beyond `maxConnections` wait in any case.
    public var refusesWithoutDescriptors = false {
        didSet { if refusesWithoutDescriptors { openReserve() } else { closeReserve() } }
    }
    /// How many clients were refused for want of a descriptor.
    public internal(set) var refusedConnections = 0

    let loop: EventLoop
    let doors: [AcceptSocket]
    let claims = AcceptQueue()
    var isClosed = false
    var isDraining = false
    var drain: ListenerDrain?
    let account = DrainCounters()
    /// What it serves on its own loop.
    let branch: ConnectionTracker
    /// What it serves on a group of loops.
    var group: GroupServer?
    private var backOff: EventLoop.Timer?
    private var isInTrouble = false
    /// The descriptor that is closed to accept those who are refused.
    var reserve: CInt?

    /// How many connections are accepted in one turn, so that a storm of them leaves time for those that are there.
    private static var budget: Int { 64 }
    /// The same when it is closed with `drain`; more than a backlog holds, so that only an error for each could reach it.
    private static var drainBudget: Int { 65536 }
    private static var pause: Duration { .milliseconds(100) }

    /// - Parameter sockets: one at least.
    init(_ sockets: [ListeningSocket], on loop: EventLoop) {
        self.loop = loop
        localAddresses = sockets.map(\.address)
        doors = sockets.map(AcceptSocket.init)
        branch = ConnectionTracker(on: loop, account)
        claims.listener = self
        // A watch of a descriptor that was closed before it was cancelled may have left its mark on the number.
        for door in doors { loop.forget(door.socket.fd) }
    }

    // With the loop goes what has held us: the pause of `backOff`, or the handlers of connections that were running.
    deinit {
        if loop.isOwnedByThisThread && !isClosed { release() }
        loop.performCleanup {
            [loop, doors, backOff, reserve, drain, claims, active = openConnections, isOpen = !isClosed] in
            // Else nobody waits for it, or it would be held.
            if isOpen {
                if !loop.hasEnded { backOff?.cancel() }
                for door in doors { door.letGo(on: loop) }
                if let reserve { loop.closeDescriptor(reserve) }
            }
            drain?.finish(active: active)
            claims.refuseAll(SystemError(.accept, ECANCELED, detail: "the loop has ended"))
        }
    }

    /// Whether somebody waits for a connection, or `serve` may have another.
    var hasRoom: Bool { claims.service.map { activeConnections < $0.limit } ?? !claims.waiting.isEmpty }

    /// Stops listening. Connections that run go on; a waiting `accept` is rejected with `ECANCELED`. The file of a Unix
    /// listener is removed, if it is still the one that it has made.
    ///
    /// - Parameter drain: whether connections that already wait in the backlog are accepted first; without it the
    ///   kernel resets them. Only for `serve`, and up to its limit.
    public func close(drain: Bool = false) {
        // Within a handler that the draining has started it is under way already.
        if isClosed || drain && isDraining { return }
        // (In a forked child they are the parent's to accept.)
        if drain, claims.service != nil, !loop.kernel.isForked {
            isDraining = true
            for door in doors {
                for _ in 0..<Self.drainBudget where !isClosed && hasRoom {
                    guard acceptOne(door) else { break }
                }
            }
        }
        if !isClosed { end(nil) }
    }

    // MARK: Accepting

    func acceptReady(on door: AcceptSocket) {
        // Before it calls out: a handler may turn the loop.
        updateInterest()
        for _ in 0..<Self.budget where !isClosed && hasRoom {
            guard acceptOne(door) else { break }
        }
        if !isClosed { updateInterest() }
    }

    /// Answers whether there may be more.
    private func acceptOne(_ door: AcceptSocket) -> Bool {
        var storage = sockaddr_storage()
        let result = loop.kernel.accept(door.socket.fd, &storage)
        guard result < 0 else {
            isInTrouble = false
            door.refusals = 0
            if refusesWithoutDescriptors { openReserve() }
            deliver(Accepted(fd: CInt(result), peer: SocketAddress(storage), isUnix: door.address.isUnix))
            return true
        }
        switch CInt(-result) {
        case EAGAIN:
            door.refusals = 0
            return false
        case EMFILE, ENFILE, ENOBUFS, ENOMEM:
            let isNew = !isInTrouble
            isInTrouble = true
            backOff(SystemError(.accept, CInt(-result), detail: door.address.description), isNew: isNew)
            return false
        case EBADF, EINVAL, ENOTSOCK, EOPNOTSUPP:
            end(SystemError(.accept, CInt(-result), detail: door.address.description))
            return false
        // Of one connection that failed before it was accepted; accept(2) lists the network errors that may come here.
        default:
            door.refusals += 1
            if door.refusals < Self.budget { return true }
            // Refused before it is taken out of the backlog, a connection stays there: the next call would find it again.
            let error = SystemError(.accept, CInt(-result), detail: door.address.description)
            backOff(error, isNew: door.refusals == Self.budget)
            return false
        }
    }

    private func deliver(_ accepted: Accepted) {
        if let service = claims.service { return service.start(accepted) }
        claims.waiting.removeFirst().fulfill(accepted.connection(on: loop))
    }

    private func backOff(_ error: SystemError, isNew: Bool) {
        if isNew { conf.log(.acceptPaused(error)) }
        // Who was told may have closed it.
        if isClosed { return }
        if error.code == EMFILE { refuseWaitingClients() }
        backOff?.cancel()
        backOff = loop.schedule(after: Self.pause) { [self] in
            backOff = nil
            updateInterest()
        }
        updateInterest()
    }

    /// Each door waits exactly while there is room, and holds the listener exactly while it waits.
    func updateInterest() {
        for door in doors where !isClosed {
            let waits = hasRoom && backOff == nil
            door.keeper = waits ? self : nil
            do throws(SystemError) {
                try loop.setInterest(waits ? .reading : [], of: door.socket.fd, handler: door)
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
        if let error { return claims.refuseAll(error) }
        if claims.service == nil {
            claims.refuseAll(SystemError(.accept, ECANCELED, detail: "the listener was closed"))
        }
        finishIfDone()
    }

    func finishIfDone() {
        endGroupIfDone()
        guard isClosed, openConnections == 0, let service = claims.service else { return }
        claims.service = nil
        service.promise.fulfill(())
    }

    func release() {
        isClosed = true
        backOff?.cancel()
        backOff = nil
        closeReserve()
        for door in doors { door.letGo(on: loop) }
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
