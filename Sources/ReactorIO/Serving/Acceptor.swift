import Promises
import Reactor
import ReactorLibc

/// The sockets of a listener. Accepting pauses while the system refuses clients. Accessed only on the loop's thread and
/// in the listener's deinit.
final class Acceptor {
    private let loop: EventLoop
    private var sockets: [AcceptSocket]
    private var pause: EventLoop.Timer?
    /// True when the last `accept` failed for lack of descriptors or memory.
    private var hasShortage = false

    /// The number of connections accepted per turn, so that a burst leaves time for existing ones.
    private static var budget: Int { 64 }
    /// The number of events that get a single `accept`, after a second `accept` found no client. This saves the failing
    /// call.
    private static var singles: Int { 8 }
    /// Exceeds any backlog, so only repeated errors could reach it.
    private static var backlogBudget: Int { 65536 }
    /// The number of consecutive accept failures before a pause.
    private static var refusalLimit: Int { 64 }

    init(_ sockets: [ListeningSocket], on loop: EventLoop) {
        self.loop = loop
        self.sockets = sockets.map(AcceptSocket.init)
        // Forgets any stale registration of the same descriptor.
        for socket in self.sockets { loop.forget(socket.socket.fd) }
    }

    func acceptBacklog(for listener: Listener) {
        for socket in sockets { accept(on: socket, for: listener, atMost: Self.backlogBudget) }
    }

    func acceptReady(on socket: AcceptSocket, for listener: Listener) {
        // Done before any handler runs, because a handler may turn the loop.
        updateInterest(for: listener)
        if socket.singles > 0 {
            socket.singles -= 1
            accept(on: socket, for: listener, atMost: 1)
        } else if accept(on: socket, for: listener, atMost: Self.budget) == 1 {
            socket.singles = Self.singles
        }
        updateInterest(for: listener)
    }

    @discardableResult
    private func accept(on socket: AcceptSocket, for listener: Listener, atMost limit: Int) -> Int {
        for count in 0..<limit {
            guard listener.takesClients, acceptOne(on: socket, for: listener) else { return count }
        }
        return limit
    }

    /// - Returns: true if further clients may be waiting.
    private func acceptOne(on socket: AcceptSocket, for listener: Listener) -> Bool {
        var storage = sockaddr_storage()
        let result = loop.kernel.accept(socket.socket.fd, &storage)
        if result >= 0 {
            hasShortage = false
            socket.refusals = 0
            listener.take(Accepted(fd: CInt(result), peer: SocketAddress(storage), isUnix: socket.address.isUnix))
            return true
        }
        let code = CInt(-result)
        switch code {
        case EAGAIN: socket.refusals = 0
        case EMFILE, ENFILE, ENOBUFS, ENOMEM:
            let isNew = !hasShortage
            hasShortage = true
            beginPause(socket.error(code), isNew: isNew, for: listener)
        case EBADF, EINVAL, ENOTSOCK: listener.fail(socket.error(code))
        // Errors of one connection that failed before it was accepted: the network errors listed in accept(2), and
        // EOPNOTSUPP, which cannot mean the listener, a stream socket. A connection that a security module refuses may
        // stay in the backlog, where the next call finds it again.
        default:
            socket.refusals += 1
            if socket.refusals < Self.refusalLimit { return true }
            beginPause(socket.error(code), isNew: socket.refusals == Self.refusalLimit, for: listener)
        }
        return false
    }

    /// - Parameter isNew: true at the beginning of an episode, which is logged.
    private func beginPause(_ error: SystemError, isNew: Bool, for listener: Listener) {
        if isNew { conf.log(.acceptPaused(error)) }
        // The log handler may have closed the listener.
        if sockets.isEmpty { return }
        pause?.cancel()
        pause = loop.schedule(after: .milliseconds(100)) { [self] in
            pause = nil
            updateInterest(for: listener)
        }
        updateInterest(for: listener)
    }

    var isPaused: Bool { pause != nil }

    /// Registers each socket exactly while there is room. A registered socket retains the listener.
    func updateInterest(for listener: Listener) {
        let waits = pause == nil && listener.takesClients
        for socket in sockets {
            socket.listener = waits ? listener : nil
            do throws(SystemError) {
                try loop.setInterest(waits ? .reading : [], of: socket.socket.fd, handler: socket)
            } catch { return listener.fail(error) }
        }
    }

    /// Callable on any thread once the loop has ended.
    func close() {
        if let pause = pause.take(), !loop.hasEnded { pause.cancel() }
        let closed = sockets
        sockets = []
        for socket in closed { socket.close(on: loop) }
    }
}

final class AcceptSocket: ReadinessHandler {
    private let listening: ListeningSocket
    /// The listener, retained while this socket waits for clients.
    var listener: Listener?
    /// The number of consecutive `accept` failures caused by a single connection.
    var refusals = 0
    /// The number of coming events limited to one `accept`.
    var singles = 0

    init(_ listening: ListeningSocket) { self.listening = listening }

    var socket: Socket { listening.socket }
    var address: SocketAddress { listening.address }

    /// The entry in `keepAliveReasons`, with the address of the waiting socket.
    package var label: String { "Listener(\(address))" }

    func error(_ code: CInt) -> SystemError { SystemError(.accept, code, detail: address.description) }

    func close(on loop: EventLoop) {
        listener = nil
        if loop.isOwnedByThisThread { loop.forget(socket.fd) }
        listening.close()
    }

    package func descriptorIsReady(_ ready: Interest) -> Interest {
        if let listener { listener.acceptor.acceptReady(on: self, for: listener) }
        return []
    }

    package func loopWillEnd() { listener?.loopWillEnd() }
}
