import ReactorLibc

/// Keeps two servers that start at the same time from replacing each other's socket at a Unix path.
///
/// A bound socket that does not listen yet looks like one that a dead process has left, and no system call removes a
/// file only if it is the one that was examined. A process that takes a path therefore holds a lock meanwhile: flock(2)
/// on a file next to it, `.NAME.reactor-lock`, which is created for that moment and removed again. The kernel releases
/// the lock of a process that dies; the next process takes over the empty file that remains.
struct UnixPathLock {
    private let path: String
    private let fd: CInt
    private let kernel: CountingSyscalls

    /// Takes the lock for `address`.
    /// - Returns: `nil` if `address` is not a path, or if the lock file cannot be created. Nothing may be replaced
    ///   then, and bind(2) will report the cause.
    /// - Throws: `EADDRINUSE` of `bind` if another process holds the lock, because it is taking the path.
    static func take(for address: SocketAddress, _ kernel: CountingSyscalls) throws(SystemError) -> UnixPathLock? {
        guard let path = address.unixPath.map(lockPath) else { return nil }
        // Each further round has found a lock that was released, and its file removed, between two calls.
        for _ in 0..<16 {
            let flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
            let result = kernel.open(path, flags, 0o600)
            if result < 0 { return nil }
            let lock = UnixPathLock(path: path, fd: CInt(result), kernel: kernel)
            let failure = kernel.lock(lock.fd)
            if failure == -Int(EWOULDBLOCK) {
                kernel.close(lock.fd)
                break
            }
            let verdict = failure < 0 ? .foreign : lock.verdict
            if verdict == .ours { return lock }
            kernel.close(lock.fd)
            if verdict == .foreign { return nil }
        }
        throw SystemError(.bind, EADDRINUSE, detail: "\(address), which another process is binding right now")
    }

    /// In the directory of the socket: a process that may create a socket there may create this file too.
    private static func lockPath(of path: String) -> String {
        let name = path.utf8.lastIndex(of: UInt8(ascii: "/")).map { path.utf8.index(after: $0) } ?? path.startIndex
        return "\(path[..<name]).\(path[name...]).reactor-lock"
    }

    private enum Verdict { case ours, removed, foreign }

    /// The state of the locked file: the current one, one that its holder has removed, or not a lock file.
    private var verdict: Verdict {
        var (locked, present) = (stat(), stat())
        guard kernel.fileStatus(fd, &locked) >= 0, locked.st_mode & S_IFMT == S_IFREG, locked.st_size == 0 else {
            return .foreign
        }
        guard kernel.linkStatus(path, &present) >= 0 else { return .removed }
        return locked.st_dev == present.st_dev && locked.st_ino == present.st_ino ? .ours : .removed
    }

    func release() {
        // The file is removed first, while no other process can hold its lock.
        _ = kernel.unlink(path)
        kernel.close(fd)
    }
}
