import CLinux
import Glibc

/// A socket that listens, and the file that it has made if its address is a path.
package struct ListeningSocket {
    package let socket: Socket
    package let address: SocketAddress
    private var file: UnixFile?

    /// Listens on `address`. `mode` are the permissions of the file, for a path only.
    package init(
        on address: SocketAddress, backlog: Int, mode: UInt32?, _ settings: [SocketSetting], _ kernel: CountingSyscalls
    ) throws(SystemError) {
        let name = address.description
        if let mode, address.unixPath == nil || mode > 0o7777 {
            let reason = address.unixPath == nil ? "only a path has one" : "it is at most 7777"
            throw SystemError(.changeMode, EINVAL, detail: "\(name), mode: \(String(mode, radix: 8)): \(reason)")
        }
        var file: UnixFile?
        socket = try Socket(SOCK_STREAM, for: address, kernel).orClosed { socket throws(SystemError) in
            // A restarted server must not wait for the last connections of its predecessor to leave TIME_WAIT.
            if !address.isUnix { try socket.set(SOL_SOCKET, SO_REUSEADDR, CInt(1)) }
            // Otherwise [::] would also take the IPv4 port, and a second listener there would fail.
            if address.isIPv6 { try socket.set(CInt(IPPROTO_IPV6), IPV6_V6ONLY, CInt(1)) }
            try socket.apply(settings)
            // From before the path is taken until there is a listener: in between it looks like one of a dead process.
            let lock = try UnixPathLock.take(for: address, kernel)
            defer { lock?.release() }
            file = try UnixFile.bind(socket, to: address, mayReplace: lock != nil)
            do throws(SystemError) {
                // Nobody can connect before the socket listens, so nobody does before this.
                if let mode { try file?.setMode(mode) }
                _ = try kernel.listen(socket.fd, CInt(clamping: backlog)).orThrow(.listen, name)
            } catch {
                file?.remove()
                throw error
            }
        }
        self.file = file
        self.address = address.isUnix ? address : socket.localAddress ?? address
    }

    /// A socket that somebody else has made, and the caller gives away unless this throws. Its file, if there is one, stays.
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
        guard type == CInt(SOCK_STREAM.rawValue) else {
            throw SystemError(.listen, EINVAL, detail: "descriptor \(fd) is no stream socket")
        }
        guard let address = socket.localAddress else {
            throw SystemError(.getSocketName, EAFNOSUPPORT, detail: "descriptor \(fd)")
        }
        let flags = try kernel.fileControl(fd, F_GETFL).orThrow(.fileControl, "descriptor \(fd)")
        _ = try kernel.fileControl(fd, F_SETFL, CInt(flags) | O_NONBLOCK)
            .orThrow(.fileControl, "descriptor \(fd)")
        _ = try kernel.fileControl(fd, F_SETFD, FD_CLOEXEC)
            .orThrow(.fileControl, "descriptor \(fd)")
        self.socket = socket
        self.address = address
    }

    /// Closes the socket, and removes its file if that is still the one which it has made.
    package func close() {
        // First the file: a client that finds it should find somebody.
        file?.remove()
        socket.kernel.close(socket.fd)
    }
}

/// The file of a Unix socket, as it was when the socket was bound.
struct UnixFile {
    private let path: String
    private let address: SocketAddress
    private let identity: FileIdentity?
    private let kernel: CountingSyscalls

    /// Binds `socket`; `nil` if `address` is not a path. A socket file without a listener is removed first, if
    /// the path is locked: it is what a dead process has left behind.
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

    /// Whether `path` is a socket at which nobody listens. A connect tells: who does listen sees a client that goes at once.
    ///
    /// Between the question and the removal another process may take the path, or begin to listen there. One that uses this
    /// library is kept out by the lock; for others, which know none, asking twice what file it is leaves microseconds.
    private static func isStale(_ path: String, _ address: SocketAddress, _ kernel: CountingSyscalls) -> Bool {
        guard let before = identity(path, kernel), before.isSocket,
            let probe = try? Socket(SOCK_STREAM, for: address, kernel)
        else { return false }
        // EAGAIN is a listener whose backlog is full, EPROTOTYPE a datagram socket: both are alive.
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

    /// If it is still the one that was made.
    func remove() {
        if let identity, Self.identity(path, kernel) == identity { _ = kernel.unlink(path) }
    }
}

private struct FileIdentity: Equatable {
    let device: dev_t
    let inode: ino_t
    let isSocket: Bool
}
