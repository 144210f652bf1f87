import CLinux
import ReactorLibc

/// A socket and its system calls. Every socket is non-blocking and close-on-exec, and closed on every error path.
package struct Socket {
    package let fd: CInt
    let kernel: CountingSyscalls

    package init(_ fd: CInt, _ kernel: CountingSyscalls) {
        self.fd = fd
        self.kernel = kernel
    }

    init(
        _ kind: Int, for address: SocketAddress, _ kernel: CountingSyscalls
    ) throws(SystemError) {
        let type = CInt(kind | clinux_SOCK_NONBLOCK | clinux_SOCK_CLOEXEC)
        let number = try kernel.socket(address.family, type).orThrow(.socket, address.description)
        self.init(CInt(number), kernel)
    }

    func orClosed(_ body: (Socket) throws(SystemError) -> Void) throws(SystemError) -> Socket {
        do throws(SystemError) { try body(self) } catch {
            kernel.close(fd)
            throw error
        }
        return self
    }

    func bind(to address: SocketAddress) throws(SystemError) {
        _ = try address.withSocketAddress { kernel.bind(fd, $0, $1) }.orThrow(.bind, address.description)
    }

    /// Opens a stream socket, bound to `source` if given, not yet connecting.
    package static func client(
        for address: SocketAddress, from source: SocketAddress?, _ settings: [SocketSetting], _ kernel: CountingSyscalls
    ) throws(SystemError) -> Socket {
        try Socket(clinux_SOCK_STREAM, for: address, kernel).orClosed { socket throws(SystemError) in
            try socket.apply(settings)
            if let source { try socket.bind(to: source) }
        }
    }

    /// Opens a UDP socket, bound to `source` and connected to `peer` if given.
    package static func datagram(
        from source: SocketAddress?, to peer: SocketAddress?, _ settings: [SocketSetting], _ kernel: CountingSyscalls
    ) throws(SystemError) -> Socket {
        guard let address = source ?? peer else {
            throw SystemError(.bind, EINVAL, detail: "no address")
        }
        if address.isUnix { throw SystemError(.bind, EAFNOSUPPORT, detail: "\(address) for UDP") }
        return try Socket(clinux_SOCK_DGRAM, for: address, kernel).orClosed { socket throws(SystemError) in
            // For the same reason as a listener: otherwise [::] takes the IPv4 port.
            if address.isIPv6 { try socket.set(CInt(IPPROTO_IPV6), IPV6_V6ONLY, CInt(1)) }
            try socket.apply(settings)
            if let source { try socket.bind(to: source) }
            guard let peer else { return }
            let code = socket.startConnect(to: peer)
            if code != 0 { throw SystemError(.connect, code, detail: peer.description) }
        }
    }

    /// Starts to connect. The socket becomes writable when it is connected or has failed. Returns 0 or an errno.
    package func startConnect(to address: SocketAddress) -> CInt {
        let result = address.withSocketAddress { kernel.startConnect(fd, $0, $1) }
        // An interrupted connect continues in the background.
        return result >= 0 || result == -Int(EINPROGRESS) || result == -Int(EINTR) ? 0 : CInt(-result)
    }

    func set<Value>(_ level: CInt, _ name: CInt, _ value: Value) throws(SystemError) {
        _ = try kernel.setSocketOption(fd, level, name, value).orThrow(.setSocketOption)
    }

    /// Sends small writes at once, so a program that waits for its peer need not wait for Nagle's timer. Ignores
    /// errors, which the next use of a broken connection reports.
    package func setNoDelay() { _ = kernel.setSocketOption(fd, CInt(IPPROTO_TCP), TCP_NODELAY, CInt(1)) }

    package func setResetOnClose() {
        _ = kernel.setSocketOption(fd, SOL_SOCKET, SO_LINGER, linger(l_onoff: 1, l_linger: 0))
    }

    /// Returns the socket's pending error. The kernel reports it once, so the caller must store it.
    package func takeError() -> CInt {
        var error: CInt = 0
        let result = kernel.getSocketOption(fd, SOL_SOCKET, SO_ERROR, &error)
        return result < 0 ? CInt(-result) : error
    }

    /// 0 if unknown.
    package var unreadBytes: Int { max(kernel.waitingBytes(fd, .incoming), 0) }

    /// Sent bytes that the peer has not acknowledged; 0 if unknown.
    package var unacknowledgedBytes: Int { max(kernel.waitingBytes(fd, .outgoing), 0) }

    package var localAddress: SocketAddress? { try? boundAddress("") }

    /// Throws `EAFNOSUPPORT` for an unsupported family.
    func boundAddress(_ name: @autoclosure () -> String) throws(SystemError) -> SocketAddress {
        var storage = sockaddr_storage()
        _ = try kernel.getSocketName(fd, &storage).orThrow(.getSocketName, name())
        guard let address = SocketAddress(storage) else {
            throw SystemError(.getSocketName, EAFNOSUPPORT, detail: name())
        }
        return address
    }

    package var peerAddress: SocketAddress? {
        var storage = sockaddr_storage()
        return kernel.getPeerName(fd, &storage) < 0 ? nil : SocketAddress(storage)
    }
}
