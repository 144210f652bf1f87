import ReactorLibc

/// Keeps two starting servers from replacing each other's socket at a Unix path.
///
/// A socket that is bound but not yet listening looks abandoned, and no system call removes a file only if it is the
/// one examined. So a process that takes a path briefly holds flock(2) on a file next to it, `.NAME.reactor-lock`, and
/// then removes that file. The kernel releases a dying process's lock; the next process takes over the empty file.
struct UnixPathLock {
    private let path: String
    private let fd: CInt
    private let kernel: CountingSyscalls

    /// Takes the lock for `address`.
    /// - Returns: `nil` if `address` is not a path, or the lock file cannot be created. Nothing may be replaced then,
    ///   and bind(2) reports the cause.
    /// - Throws: `EADDRINUSE` from `bind` if another process is taking the path.
    static func take(for address: SocketAddress, _ kernel: CountingSyscalls) throws(SystemError) -> UnixPathLock? {
        guard let path = address.unixPath.map(lockPath) else { return nil }
        // A further round is needed only if a lock was released and removed between two calls.
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

    /// In the socket's directory, since the process can create files there.
    private static func lockPath(of path: String) -> String {
        let name = path.utf8.lastIndex(of: UInt8(ascii: "/")).map { path.utf8.index(after: $0) } ?? path.startIndex
        return "\(path[..<name]).\(path[name...]).reactor-lock"
    }

    private enum Verdict { case ours, removed, foreign }

    /// The locked file's state: current, removed by its holder, or not a lock file.
    private var verdict: Verdict {
        var (locked, present) = (stat(), stat())
        guard kernel.fileStatus(fd, &locked) >= 0, locked.st_mode & S_IFMT == S_IFREG, locked.st_size == 0 else {
            return .foreign
        }
        guard kernel.linkStatus(path, &present) >= 0 else { return .removed }
        return locked.st_dev == present.st_dev && locked.st_ino == present.st_ino ? .ours : .removed
    }

    func release() {
        // First, while no other process can hold the lock.
        _ = kernel.unlink(path)
        kernel.close(fd)
    }
}
