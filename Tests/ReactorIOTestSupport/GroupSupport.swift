import Glibc
import PromisesTestSupport

/// Gives `body` its own loop and a group, which has ended when this returns.
func withGroup(_ loops: Int, _ body: (EventLoop, LoopGroup) throws -> Void) throws {
    let group = try LoopGroup(loops: loops, name: "loop")
    defer {
        group.stop()
        group.join()
    }
    try EventLoop.withLoop { try body($0, group) }
}

/// Records the name of this thread's loop.
func note(_ places: Shared<[String]>) {
    let name = EventLoop.current.remote.name ?? "?"
    places.change { $0.append(name) }
}

/// True if a byte of `client` is echoed, while this thread's loop runs.
func answers(_ client: Peer) throws -> Bool {
    let answer = elsewhere {
        try client.send("x")
        return try client.receive(exactly: 1)
    }
    return try hang(answer, timeout: patience) == Array("x".utf8)
}

/// A client that is being served: it has been echoed a byte.
func welcome(to listener: Listener) throws -> Peer {
    let client = try Peer(to: listener.localAddress)
    expect(try answers(client))
    return client
}

/// The bytes from the other side up to its end, while this thread's loop runs.
func reply(of client: Peer) throws -> String {
    client.end()
    let reply = elsewhere { try client.readToEnd() }
    return String(decoding: try hang(reply, timeout: patience), as: UTF8.self)
}

extension Peer {
    /// The local address.
    var localAddress: SocketAddress? { address(of: fd, getsockname) }
}

/// The address of a socket by `name`: getsockname(2) or getpeername(2).
func address(
    of fd: CInt, _ name: (CInt, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> CInt
) -> SocketAddress? {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let result = withUnsafeMutablePointer(to: &storage) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { name(fd, $0, &length) }
    }
    return result == 0 ? SocketAddress(storage) : nil
}
