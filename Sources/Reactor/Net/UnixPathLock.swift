import Glibc

/// Keeps two servers that start at once from replacing each other's socket at a Unix path.
///
/// A socket that is bound and does not listen yet cannot be told from one that a dead process has left behind, and there is
/// no call that removes a file only if it is the one that was judged. So a process that takes a path holds a lock meanwhile: flock(2) on a
/// file beside it, `.NAME.reactor-lock`, which is made for that moment and removed again. The kernel releases the lock of a
/// process that dies; the empty file that it leaves is taken over by the next one.
struct UnixPathLock {
    private let path: String
    private let fd: CInt
    private let kernel: CountingSyscalls

    /// `nil` if `address` is no path, or if the lock cannot be had since there can be no such file: then nothing may be
    /// replaced, and bind(2) knows better what is wrong.
    /// - Throws: `EADDRINUSE` of `bind` if another process has the lock: it is taking the path.
    static func take(for address: SocketAddress, _ kernel: CountingSyscalls) throws(SystemError) -> UnixPathLock? {
        guard let path = address.unixPath.map(lockPath) else { return nil }
        // Each further round has met a lock that was released, and its file removed, between two calls.
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
        throw SystemError(.bind, EADDRINUSE, detail: "\(address), which another process is taking at this moment")
    }

    /// In the folder of the socket: a process that may make a socket there may make this file too.
    private static func lockPath(of path: String) -> String {
        let name = path.utf8.lastIndex(of: UInt8(ascii: "/")).map { path.utf8.index(after: $0) } ?? path.startIndex
        return "\(path[..<name]).\(path[name...]).reactor-lock"
    }

    private enum Verdict { case ours, removed, foreign }

    /// What has been locked: the file that is there now, one that its holder has removed, or one that was never ours.
    private var verdict: Verdict {
        var (locked, present) = (stat(), stat())
        guard kernel.fileStatus(fd, &locked) >= 0, locked.st_mode & S_IFMT == S_IFREG, locked.st_size == 0 else {
            return .foreign
        }
        guard kernel.linkStatus(path, &present) >= 0 else { return .removed }
        return locked.st_dev == present.st_dev && locked.st_ino == present.st_ino ? .ours : .removed
    }

    func release() {
        // First the file, while no other process can hold its lock.
        _ = kernel.unlink(path)
        kernel.close(fd)
    }
}
