import Glibc
import Reactor

/// What takes the connections that an acceptor accepts. Called on the loop's thread.
protocol AcceptorOwner: AcceptSocketOwner {
    /// Whether a further connection would be taken.
    var hasRoom: Bool { get }
    func take(_ accepted: Accepted)
    func acceptingDidFail(_ error: SystemError)
}

/// The sockets of a listener: accepts clients while its owner has room, and pauses where the system refuses them.
///
/// Accessed only on the loop's thread, and when the last reference to the listener is released.
final class Acceptor {
    private let loop: EventLoop
    private let sockets: [AcceptSocket]
    private var pause = AcceptPause()
    private var stage = Stage.listening
    /// Whether the owner had no room at the last update.
    private var lacksRoom = false
    var isClosed: Bool { stage == .closed }

    private enum Stage {
        case listening
        /// The last clients are accepted before the sockets are closed.
        case takingBacklog
        case closed
    }

    /// How many connections are accepted in one turn, so that a burst of new ones leaves time for the existing ones.
    private static var budget: Int { 64 }
    /// How many connections of a backlog are accepted: more than it holds, so that only repeated errors could reach it.
    private static var backlogBudget: Int { 65536 }

    init(_ sockets: [ListeningSocket], on loop: EventLoop) {
        self.loop = loop
        self.sockets = sockets.map(AcceptSocket.init)
        // A watch of a descriptor that was closed before it was cancelled may have left its mark on the number.
        for socket in self.sockets { loop.forget(socket.socket.fd) }
    }

    /// Accepts the clients that already wait, as far as there is room, before the sockets are to be closed.
    /// - Returns: false if a handler has called this that this very function has started: it goes on.
    func acceptBacklog(for owner: any AcceptorOwner) -> Bool {
        if stage != .listening { return false }
        stage = .takingBacklog
        for socket in sockets { accept(on: socket, for: owner, atMost: Self.backlogBudget) }
        return true
    }

    func acceptReady(on socket: AcceptSocket, for owner: any AcceptorOwner) {
        // Before any handler is called: it may turn the loop.
        updateInterest(for: owner)
        accept(on: socket, for: owner, atMost: Self.budget)
        updateInterest(for: owner)
    }

    private func accept(on socket: AcceptSocket, for owner: any AcceptorOwner, atMost count: Int) {
        for _ in 0..<count where !isClosed && owner.hasRoom {
            guard acceptOne(on: socket, for: owner) else { break }
        }
    }

    /// - Returns: whether further clients may be waiting.
    private func acceptOne(on socket: AcceptSocket, for owner: any AcceptorOwner) -> Bool {
        var storage = sockaddr_storage()
        let result = loop.kernel.accept(socket.socket.fd, &storage)
        if result >= 0 {
            pause.hasShortage = false
            socket.refusals = 0
            owner.take(Accepted(fd: CInt(result), peer: SocketAddress(storage), isUnix: socket.address.isUnix))
            return true
        }
        let code = CInt(-result)
        switch pause.reaction(to: code, &socket.refusals) {
        case .acceptNext: return true
        case .wait: break
        case .pause(let isNew): beginPause(socket.error(code), isNew: isNew, for: owner)
        case .end: owner.acceptingDidFail(socket.error(code))
        }
        return false
    }

    private func beginPause(_ error: SystemError, isNew: Bool, for owner: any AcceptorOwner) {
        if isNew { conf.log(.acceptPaused(error)) }
        // The log handler may have closed the listener.
        if isClosed { return }
        pause.timer?.cancel()
        pause.timer = loop.schedule(after: AcceptPause.length) { [self] in
            pause.timer = nil
            updateInterest(for: owner)
        }
        updateInterest(for: owner)
    }

    /// A connection of the owner no longer counts. Only where the owner was at its limit that makes a difference.
    func roomMayHaveGrown(for owner: any AcceptorOwner) { if lacksRoom { updateInterest(for: owner) } }

    /// Each socket is registered exactly while there is room, and retains its owner exactly while it is registered.
    func updateInterest(for owner: any AcceptorOwner) {
        let hasRoom = owner.hasRoom
        lacksRoom = !hasRoom
        for socket in sockets where !isClosed {
            let waits = pause.timer == nil && hasRoom
            socket.owner = waits ? owner : nil
            do throws(SystemError) {
                try loop.setInterest(waits ? .reading : [], of: socket.socket.fd, handler: socket)
            } catch {
                owner.acceptingDidFail(error)
            }
        }
    }

    /// Closes the sockets. Any thread, once the loop has ended.
    func close() {
        if isClosed { return }
        stage = .closed
        if let timer = pause.timer.take(), !loop.hasEnded { timer.cancel() }
        for socket in sockets { socket.close(on: loop) }
    }
}
