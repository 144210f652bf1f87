import Glibc
import PromisesTestSupport

/// A port of 127.0.0.1 for one listener, which no other test gets until this object is released, so that nothing
/// listens there when the listener is closed.
///
/// A socket is bound to the port but does not listen. With SO_REUSEADDR on both, a listener may also be bound there,
/// and the kernel chooses the port for no other socket.
final class ReservedPort {
    private let fd: CInt
    let address: SocketAddress

    init() throws {
        let fd = socket(AF_INET, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        self.fd = fd
        var isOn: CInt = 1
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &isOn, socklen_t(MemoryLayout<CInt>.size))
        let failure = SocketAddress.loopback(port: 0).withSocketAddress { bind(fd, $0, $1) }
        try #require(failure == 0)
        var name = sockaddr_storage()
        _ = CountingSyscalls().getSocketName(fd, &name)
        address = try #require(SocketAddress(name))
    }

    deinit { close(fd) }

    /// Expects that nothing listens at the port, or not for long: a child that another test starts has a copy of the
    /// listening socket until it executes its program.
    func expectRefusal(sourceLocation: SourceLocation = #_sourceLocation) {
        let deadline = ContinuousClock.now + patience
        while ContinuousClock.now < deadline, let early = try? Peer(to: address) {
            early.close()
            sched_yield()
        }
        #expect(throws: SystemError(.connect, ECONNREFUSED), sourceLocation: sourceLocation) { try Peer(to: address) }
    }
}
