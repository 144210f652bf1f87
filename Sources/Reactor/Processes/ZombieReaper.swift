import ReactorLibc

/// Children that outlived their loop. Each start of a child, on any loop, reaps them, so there are never more zombies
/// than children that once lived at the same time.
enum ZombieReaper {
    // With pidfds, if any: once other code has taken the status, the process number may belong to another child.
    private static let children = LockedValue<[(process: pid_t, pidfd: CInt)]>.ofProcess([])

    /// Copies the pidfd, since the loop closes its own.
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
    /// Takes an ended child's status, and reaps it unless `keepsZombie`. Uses the pidfd, or the process number if the
    /// pidfd is -1. Returns `nil` if the child has not ended.
    func wait(_ process: pid_t, _ pidfd: CInt, keepsZombie: Bool = false) -> ChildExitStatus? {
        var code: CInt = 0
        var value: CInt = 0
        var result = -Int(EINVAL)
        if pidfd >= 0 { result = wait(true, pidfd, keepsZombie: keepsZombie, &code, &value) }
        // Linux 5.3 has pidfds, but its waitid refuses them.
        if result == -Int(EINVAL) { result = wait(false, process, keepsZombie: keepsZombie, &code, &value) }
        if result == 0 { return nil }
        if result < 0 { return .unknown }
        return code == CLD_EXITED ? .exited(value) : .signaled(value)
    }
}
