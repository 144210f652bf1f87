import Reactor

/// What accept4 has answered, of which no connection has been made yet.
struct Accepted: Sendable {
    let fd: CInt
    let peer: SocketAddress?
    let isUnix: Bool

    /// The current loop's from now on.
    func connection(on loop: EventLoop) -> Connection {
        loop.forget(fd)
        return Connection(Socket(fd, loop.kernel), peer: peer, isUnix: isUnix, on: loop)
    }
}
