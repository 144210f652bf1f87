@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// The test's own socket, bound to `address`; listens if it is a stream.
final class OwnSocket {
    let fd: CInt
    let address: SocketAddress

    init(_ type: __socket_type, _ address: SocketAddress) throws {
        let fd = socket(address.family, CInt(type.rawValue | SOCK_CLOEXEC.rawValue), 0)
        self.fd = fd
        guard address.withSocketAddress({ bind(fd, $0, $1) }) == 0 else {
            throw SystemError(.bind, errno, detail: "\(address)")
        }
        if type == SOCK_STREAM { listen(fd, 16) }
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        withUnsafeMutableBytes(of: &storage) {
            _ = getsockname(fd, $0.assumingMemoryBound(to: sockaddr.self).baseAddress!, &length)
        }
        self.address = address.isUnix ? address : SocketAddress(storage) ?? address
    }

    deinit { close(fd) }

    /// The first datagram; `nil` if none comes.
    func receive(within patience: CInt = 10_000) -> String? {
        var entry = pollfd(fd: fd, events: Int16(POLLIN), revents: 0)
        guard poll(&entry, 1, patience) == 1 else { return nil }
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = recv(fd, &buffer, buffer.count, 0)
        return count < 0 ? nil : String(decoding: buffer[..<count], as: UTF8.self)
    }

    /// Sends datagrams until the queue is full; returns their number. Each comes from a separate socket, so that this
    /// queue fills, not a sender's.
    func fill() -> Int {
        for number in 0..<100_000 {
            let sender = socket(address.family, CInt(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            defer { close(sender) }
            let result = address.withSocketAddress { sendto(sender, "x", 1, CInt(MSG_DONTWAIT), $0, $1) }
            if result < 0 { return number }
        }
        return 0
    }

    /// True if a client waits to be accepted.
    var hasClients: Bool {
        var entry = pollfd(fd: fd, events: Int16(POLLIN), revents: 0)
        return poll(&entry, 1, 0) == 1
    }
}
