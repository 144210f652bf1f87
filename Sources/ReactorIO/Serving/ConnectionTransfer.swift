import Reactor
import ReactorLibc

/// A connection in transfer to another loop, from its dispatch until its descriptor is closed: first a job for that
/// loop, then an object that the connection retains. Its deinit counts as the connection's end, even if the loop has
/// gone.
// @unchecked: `accepted`, `isDone` and `isLingering` are accessed on the loop's thread, or in deinit. `destination` is
// written only while no loop has the job, and only read afterwards.
final class ConnectionTransfer: Job, @unchecked Sendable {
    private let server: Server
    private var accepted: Accepted?
    /// True when the handler has finished and the descriptor is closed.
    var isDone = false
    /// True when the handler has finished and the descriptor is still open.
    var isLingering = false
    private var destination: LoopGroup.Member?

    init(_ accepted: Accepted, to server: Server) {
        self.accepted = accepted
        self.server = server
    }

    deinit {
        // The loop ended before the socket arrived.
        if let accepted { _ = ReactorLibc.close(accepted.fd) }
        destination?.load.subtract(1, ordering: .relaxed)
        if !isDone { server.counts.countLost() }
        server.connectionDidEnd(wasLingering: isLingering)
    }

    /// - Returns: false if the loop of `member` has ended.
    func dispatch(to member: LoopGroup.Member) -> Bool {
        destination = member
        member.load.add(1, ordering: .relaxed)
        if member.remote.post(self) { return true }
        destination = nil
        member.load.subtract(1, ordering: .relaxed)
        return false
    }

    override func run() {
        guard let accepted = accepted.take(), let destination else { return }
        server.arrived(self, accepted, on: destination)
    }
}

struct Accepted: Sendable {
    let fd: CInt
    let peer: SocketAddress?
    let isUnix: Bool

    func connection(on loop: EventLoop) -> Connection {
        loop.forget(fd)
        return Connection(Socket(fd, loop.kernel), peer: peer, isUnix: isUnix, on: loop)
    }
}
