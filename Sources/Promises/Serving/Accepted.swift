import Reactor

/// A socket that accept4 has returned, before it becomes a connection.
struct Accepted: Sendable {
    let fd: CInt
    let peer: SocketAddress?
    let isUnix: Bool

    /// Makes the connection, which belongs to `loop`, the current loop.
    func connection(on loop: EventLoop) -> Connection {
        loop.forget(fd)
        return Connection(Socket(fd, loop.kernel), peer: peer, isUnix: isUnix, on: loop)
    }
}
