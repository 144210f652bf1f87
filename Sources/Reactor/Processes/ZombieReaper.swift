import Glibc
import Synchronization

/// Children whose loop has ended before them. They are reaped when the next child is started, on whatever loop, so that
/// there are never more of them dead than were once alive.
enum ZombieReaper {
    // Each with its pidfd, if it has one: should somebody else take the status, the number may be another child's.
    private static let children = Mutex<[(process: pid_t, pidfd: CInt)]>([])

    /// Keeps a copy of the pidfd, if there is one: the loop closes what it has opened.
    static func add(_ process: pid_t, pidfd: CInt) {
        var copy = -1
        if pidfd >= 0 { copy = CountingSyscalls().fileControl(pidfd, F_DUPFD_CLOEXEC, 3) }
        let child = (process, CInt(max(copy, -1)))
        children.withLock { $0.append(child) }
    }

    static func reap() {
        guard children.withLock({ !$0.isEmpty }) else { return }
        let candidates = children.withLock { list in
            defer { list = [] }
            return list
        }
        let kernel = CountingSyscalls()
        var living = candidates
        living.removeAll { process, pidfd in
            guard kernel.wait(process, pidfd) != nil else { return false }
            if pidfd >= 0 { kernel.close(pidfd) }
            return true
        }
        children.withLock { $0 += living }
    }
}

extension CountingSyscalls {
    /// Reaps a child that has ended, asked for by its pidfd, or where that is -1 by its number; `nil` if it has not.
    func wait(_ process: pid_t, _ pidfd: CInt) -> ChildExitStatus? {
        var code: CInt = 0
        var value: CInt = 0
        var result = -Int(EINVAL)
        if pidfd >= 0 { result = wait(true, pidfd, &code, &value) }
        // Linux 5.3 has pidfds and does not wait for them.
        if result == -Int(EINVAL) { result = wait(false, process, &code, &value) }
        if result == 0 { return nil }
        if result < 0 { return .unknown }
        return code == CLD_EXITED ? .exited(value) : .signaled(value)
    }
}
