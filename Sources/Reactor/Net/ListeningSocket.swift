import CLinux
import ReactorLibc

/// A listening socket, and the file that it created for a path.
package struct ListeningSocket {
    package let socket: Socket
    package let address: SocketAddress
    private var file: UnixFile?

    /// `mode` sets the file's permissions if `address` is a path.
    package init(
        on address: SocketAddress, backlog: Int, mode: UInt32?, _ settings: [SocketSetting], _ kernel: CountingSyscalls
    ) throws(SystemError) {
        let name = address.description
        if let mode, address.unixPath == nil || mode > 0o7777 {
            let reason = address.unixPath == nil ? "only a path has a mode" : "it must be at most 7777"
            throw SystemError(.changeMode, EINVAL, detail: "\(name), mode: \(String(mode, radix: 8)): \(reason)")
        }
        var file: UnixFile?
        var bound = address
        socket = try Socket(clinux_SOCK_STREAM, for: address, kernel).orClosed { socket throws(SystemError) in
            // A restarted server must not wait until its predecessor's connections leave TIME_WAIT.
            if !address.isUnix { try socket.set(SOL_SOCKET, SO_REUSEADDR, CInt(1)) }
            // Without the option, [::] also takes the IPv4 port, and a second listener there fails.
            if address.isIPv6 { try socket.set(CInt(IPPROTO_IPV6), IPV6_V6ONLY, CInt(1)) }
            try socket.apply(settings)
            // Held from before the bind until the socket listens; in between, the file looks as if a dead process had
            // left it.
            let lock = try UnixPathLock.take(for: address, kernel)
            defer { lock?.release() }
            file = try UnixFile.bind(socket, to: address, mayReplace: lock != nil)
            do throws(SystemError) {
                // Early enough, since clients cannot connect before the socket listens.
                if let mode { try file?.setMode(mode) }
                _ = try kernel.listen(socket.fd, CInt(clamping: backlog)).orThrow(.listen, name)
                // With port 0, only this call tells the address.
                if !address.isUnix { bound = try socket.boundAddress(name) }
            } catch {
                file?.remove()
                throw error
            }
        }
        self.file = file
        self.address = bound
    }

    /// Listens on `place`. For `localhost`, listens on both families' loopback addresses with the same port, IPv4
    /// first. If this machine has one family, listens on that.
    package static func at(
        _ place: ParsedEndpoint, backlog: Int, mode: UInt32?, _ settings: [SocketSetting], _ kernel: CountingSyscalls
    ) throws(SystemError) -> [ListeningSocket] {
        func listen(on address: SocketAddress) throws(SystemError) -> ListeningSocket {
            try ListeningSocket(on: address, backlog: backlog, mode: mode, settings, kernel)
        }
        guard case .localhost(let port) = place else { return try place.addresses.map(listen) }
        // The kernel chooses a port for one family; the port may be taken in the other.
        var tries = port == 0 ? 16 : 1
        while true {
            let four: ListeningSocket
            do throws(SystemError) { four = try listen(on: .loopback(port: port)) } catch {
                if error.isOfMissingFamily { return [try listen(on: .loopbacks(port: port)[0])] }
                throw error
            }
            do throws(SystemError) { return [four, try listen(on: .loopbacks(port: four.address.port)[0])] } catch {
                if error.isOfMissingFamily { return [four] }
                four.close()
                tries -= 1
                if error.code != EADDRINUSE || tries == 0 { throw error }
            }
        }
    }

    /// Takes over a socket that the caller opened, but not its file. If this throws, the caller still owns the socket.
    package init(adopting fd: CInt, _ kernel: CountingSyscalls) throws(SystemError) {
        let socket = Socket(fd, kernel)
        var isListening: CInt = 0
        _ = try kernel.getSocketOption(fd, SOL_SOCKET, SO_ACCEPTCONN, &isListening)
            .orThrow(.getSocketOption, "descriptor \(fd)")
        guard isListening != 0 else {
            throw SystemError(.listen, EINVAL, detail: "descriptor \(fd) is a socket that does not listen")
        }
        var type: CInt = 0
        _ = try kernel.getSocketOption(fd, SOL_SOCKET, SO_TYPE, &type).orThrow(.getSocketOption, "descriptor \(fd)")
        guard type == CInt(clinux_SOCK_STREAM) else {
            throw SystemError(.listen, EINVAL, detail: "descriptor \(fd) is not a stream socket")
        }
        let address = try socket.boundAddress("descriptor \(fd)")
        let flags = try kernel.fileControl(fd, F_GETFL).orThrow(.fileControl, "descriptor \(fd)")
        _ = try kernel.fileControl(fd, F_SETFL, CInt(flags) | O_NONBLOCK)
            .orThrow(.fileControl, "descriptor \(fd)")
        _ = try kernel.fileControl(fd, F_SETFD, FD_CLOEXEC)
            .orThrow(.fileControl, "descriptor \(fd)")
        self.socket = socket
        self.address = address
    }

    /// Closes the socket, and removes its file unless the path now names another file.
    package func close() {
        // Removed before closing, because a client that finds the file should find a listener.
        file?.remove()
        socket.kernel.close(socket.fd)
    }
}

extension SystemError {
    /// True when the kernel lacks the address family, or no interface has the family's loopback address.
    fileprivate var isOfMissingFamily: Bool { code == EAFNOSUPPORT || code == EADDRNOTAVAIL }
}

/// A Unix socket's file, identified when the socket was bound.
struct UnixFile {
    private let path: String
    private let address: SocketAddress
    private let identity: FileIdentity?
    private let kernel: CountingSyscalls

    /// Binds `socket`. If the path is locked, first removes a socket file that a dead process left.
    /// - Returns: `nil` if `address` is not a path.
    static func bind(
        _ socket: Socket, to address: SocketAddress, mayReplace: Bool
    ) throws(SystemError) -> UnixFile? {
        guard let path = address.unixPath else {
            try socket.bind(to: address)
            return nil
        }
        let kernel = socket.kernel
        do throws(SystemError) {
            try socket.bind(to: address)
        } catch {
            guard mayReplace, error.code == EADDRINUSE, isStale(path, address, kernel) else { throw error }
            _ = kernel.unlink(path)
            try socket.bind(to: address)
        }
        return UnixFile(path: path, address: address, identity: identity(path, kernel), kernel: kernel)
    }

    /// Returns true if `path` is a socket without a listener. Tries to connect; a live listener sees a client that
    /// disconnects at once.
    ///
    /// Another process may bind the path or listen there between the check and the removal. The lock excludes processes
    /// that use this library. For others, comparing the file's identity before and after leaves a window of
    /// microseconds.
    private static func isStale(_ path: String, _ address: SocketAddress, _ kernel: CountingSyscalls) -> Bool {
        guard let before = identity(path, kernel), before.isSocket,
            let probe = try? Socket(clinux_SOCK_STREAM, for: address, kernel)
        else { return false }
        // EAGAIN means a listener with a full backlog; EPROTOTYPE, a datagram socket. Both are alive.
        let answer = probe.startConnect(to: address)
        kernel.close(probe.fd)
        return answer == ECONNREFUSED && identity(path, kernel) == before
    }

    private static func identity(_ path: String, _ kernel: CountingSyscalls) -> FileIdentity? {
        var status = stat()
        guard kernel.linkStatus(path, &status) >= 0 else { return nil }
        return FileIdentity(device: status.st_dev, inode: status.st_ino, isSocket: status.st_mode & S_IFMT == S_IFSOCK)
    }

    func setMode(_ mode: UInt32) throws(SystemError) {
        _ = try kernel.changeMode(path, mode).orThrow(.changeMode, address.description)
    }

    /// Removes the file unless the path now names another file.
    func remove() {
        if let identity, Self.identity(path, kernel) == identity { _ = kernel.unlink(path) }
    }
}

private struct FileIdentity: Equatable {
    let device: dev_t
    let inode: ino_t
    let isSocket: Bool
}
