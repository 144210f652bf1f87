import CLinux
import Glibc

/// TCP sockets as system calls: non-blocking, close-on-exec, and closed again on every error path.
package struct Socket {
    package let fd: CInt
    private let kernel: Kernel

    package init(_ fd: CInt, _ kernel: Kernel) {
        self.fd = fd
        self.kernel = kernel
    }

    private init(stream family: CInt, _ kernel: Kernel, _ detail: String) throws(SystemError) {
        let type = CInt(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        self.init(CInt(try kernel.socket(family, type).orThrow(.socket, detail)), kernel)
    }

    /// A socket that listens on `address`.
    package static func listening(
        on address: SocketAddress, backlog: Int, _ kernel: Kernel
    ) throws(SystemError) -> Socket {
        let name = address.description
        let socket = try Socket(stream: address.family, kernel, name)
        do throws(SystemError) {
            // A restarted server must not wait for the last connections of its predecessor to leave TIME_WAIT.
            try socket.set(SOL_SOCKET, SO_REUSEADDR, CInt(1))
            // Otherwise [::] would also take the IPv4 port, and a second listener there would fail.
            if address.isIPv6 { try socket.set(CInt(IPPROTO_IPV6), IPV6_V6ONLY, CInt(1)) }
            _ = try address.withSocketAddress { kernel.bind(socket.fd, $0, $1) }.orThrow(.bind, name)
            _ = try kernel.listen(socket.fd, CInt(clamping: backlog)).orThrow(.listen, name)
        } catch {
            kernel.close(socket.fd)
            throw error
        }
        return socket
    }

    /// A socket on its way to `address`; it becomes writable when it is there, or when it has failed.
    package static func connecting(to address: SocketAddress, _ kernel: Kernel) throws(SystemError) -> Socket {
        let name = address.description
        let socket = try Socket(stream: address.family, kernel, name)
        let result = address.withSocketAddress { kernel.startConnect(socket.fd, $0, $1) }
        // An interrupted connect goes on by itself, just as one that was not waited for.
        guard result >= 0 || result == -Int(EINPROGRESS) || result == -Int(EINTR) else {
            kernel.close(socket.fd)
            throw SystemError(.connect, CInt(-result), detail: name)
        }
        return socket
    }

    private func set<Value>(_ level: CInt, _ name: CInt, _ value: Value) throws(SystemError) {
        _ = try kernel.setSocketOption(fd, level, name, value).orThrow(.setSocketOption)
    }

    /// Small writes go out at once: a promise chain that waits for its peer must not wait for Nagle's timer as well.
    /// An error is of no use to anybody: a connection that is gone says so when it is used.
    package func setNoDelay() { _ = kernel.setSocketOption(fd, CInt(IPPROTO_TCP), TCP_NODELAY, CInt(1)) }

    /// Makes `close` send a reset.
    package func setResetOnClose() {
        _ = kernel.setSocketOption(fd, SOL_SOCKET, SO_LINGER, linger(l_onoff: 1, l_linger: 0))
    }

    /// The error that the kernel holds for the socket. It tells it once: whoever asks must keep it.
    package func takeError() -> CInt {
        var error: CInt = 0
        let result = kernel.getSocketOption(fd, SOL_SOCKET, SO_ERROR, &error)
        return result < 0 ? CInt(-result) : error
    }

    package var localAddress: SocketAddress? {
        var storage = sockaddr_storage()
        return kernel.getSocketName(fd, &storage) < 0 ? nil : SocketAddress(storage)
    }

    package var peerAddress: SocketAddress? {
        var storage = sockaddr_storage()
        return kernel.getPeerName(fd, &storage) < 0 ? nil : SocketAddress(storage)
    }
}
