import Glibc
import Reactor

/// The sockets of a listener: accepts clients while it has room, and pauses if the system refuses them.
///
/// Accessed only on the loop's thread, and when the last reference to the listener is released.
final class Acceptor {
    private let loop: EventLoop
    private let sockets: [AcceptSocket]
    private var pause = AcceptPause()
    /// Whether the listener had no room at the last update.
    private var lacksRoom = false
    /// Whether the last clients are being accepted, or have been, before the sockets are closed.
    private var takesBacklog = false
    private(set) var isClosed = false

    /// The number of connections accepted per turn, so that a burst of new ones leaves time for the existing ones.
    private static var budget: Int { 64 }
    /// The number of connections accepted from a backlog: more than it holds, so that only repeated errors could reach
    /// it.
    private static var backlogBudget: Int { 65536 }

    init(_ sockets: [ListeningSocket], on loop: EventLoop) {
        self.loop = loop
        self.sockets = sockets.map(AcceptSocket.init)
        // A descriptor that was closed before its watch was cancelled may have left a registration under this number.
        for socket in self.sockets { loop.forget(socket.socket.fd) }
    }

    /// Accepts the clients that already wait, as far as there is room, before the sockets are closed.
    /// - Returns: false if called by a handler that this function has itself started: it is still running.
    func acceptBacklog(for listener: Listener) -> Bool {
        if isClosed || takesBacklog { return false }
        takesBacklog = true
        for socket in sockets { accept(on: socket, for: listener, atMost: Self.backlogBudget) }
        return true
    }

    func acceptReady(on socket: AcceptSocket, for listener: Listener) {
        // Before any handler is called: it may turn the loop.
        updateInterest(for: listener)
        accept(on: socket, for: listener, atMost: Self.budget)
        updateInterest(for: listener)
    }

    private func accept(on socket: AcceptSocket, for listener: Listener, atMost count: Int) {
        for _ in 0..<count where !isClosed && listener.hasRoom {
            guard acceptOne(on: socket, for: listener) else { break }
        }
    }

    /// - Returns: whether further clients may be waiting.
    private func acceptOne(on socket: AcceptSocket, for listener: Listener) -> Bool {
        var storage = sockaddr_storage()
        let result = loop.kernel.accept(socket.socket.fd, &storage)
        if result >= 0 {
            pause.hasShortage = false
            socket.refusals = 0
            listener.take(Accepted(fd: CInt(result), peer: SocketAddress(storage), isUnix: socket.address.isUnix))
            return true
        }
        let code = CInt(-result)
        switch pause.reaction(to: code, &socket.refusals) {
        case .acceptNext: return true
        case .wait: break
        case .pause(let isNew): beginPause(socket.error(code), isNew: isNew, for: listener)
        case .end: listener.end(socket.error(code))
        }
        return false
    }

    private func beginPause(_ error: SystemError, isNew: Bool, for listener: Listener) {
        if isNew { conf.log(.acceptPaused(error)) }
        // The log handler may have closed the listener.
        if isClosed { return }
        pause.timer?.cancel()
        pause.timer = loop.schedule(after: AcceptPause.length) { [self] in
            pause.timer = nil
            updateInterest(for: listener)
        }
        updateInterest(for: listener)
    }

    /// A connection no longer counts. This matters only if the listener was at its limit.
    func roomMayHaveGrown(for listener: Listener) { if lacksRoom { updateInterest(for: listener) } }

    /// Each socket is registered exactly while there is room, and retains the listener exactly while it is registered.
    func updateInterest(for listener: Listener) {
        let hasRoom = listener.hasRoom
        lacksRoom = !hasRoom
        for socket in sockets where !isClosed {
            let waits = pause.timer == nil && hasRoom
            socket.listener = waits ? listener : nil
            do throws(SystemError) {
                try loop.setInterest(waits ? .reading : [], of: socket.socket.fd, handler: socket)
            } catch {
                listener.end(error)
            }
        }
    }

    /// Closes the sockets. Any thread, once the loop has ended.
    func close() {
        if isClosed { return }
        isClosed = true
        if let timer = pause.timer.take(), !loop.hasEnded { timer.cancel() }
        for socket in sockets { socket.close(on: loop) }
    }
}
