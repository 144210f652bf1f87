import ReactorLibc

extension EventLoop {
    /// Calls `handler` on this loop with the ready part of `interest` whenever `fd` is ready, until the watch is
    /// cancelled.
    ///
    /// ```swift
    /// let watch = try EventLoop.current.watch(inotify, for: .reading) { _ in
    ///     readEvents(of: inotify)
    /// }
    /// ```
    ///
    /// Readiness is level-triggered: each turn reports it until the handler reads, writes or cancels. An error or
    /// hang-up counts as ready, and the handler's own system call reveals it. The watch keeps the loop alive unless
    /// unreferenced. A descriptor can have one watch for reading and one for writing.
    ///
    /// The caller still owns the descriptor. Cancel the watch *before* closing it. If a closed descriptor has a living
    /// copy (dup(2), a child process), the kernel reports the copy's events under the closed number. The loop ends this
    /// watch after at most 1,024 events, or when the number is watched again. The first such watch on the loop is
    /// reported as `LogEvent.staleWatch`.
    ///
    /// - Throws: `SystemError` from epoll_ctl(2) or from opening the loop's own descriptors:
    ///   - `EPERM` for a descriptor that cannot be polled, such as a regular file.
    ///   - `EBADF` for a closed descriptor.
    ///   - `EEXIST` if this watch exists, or if an owning connection, listener or socket waits for the descriptor.
    ///   - `ENOMEM`, and `ENOSPC` at `fs.epoll.max_user_watches`.
    public func watch(
        _ fd: CInt, for interest: Interest, _ handler: @escaping (Interest) -> Void, file: StaticString = #fileID,
        line: UInt = #line
    ) throws(SystemError) -> Watch {
        guard fd >= 0 else { throw SystemError(.epollControl, EBADF, detail: "descriptor \(fd)") }
        guard !interest.isEmpty, interest.isSubset(of: [.reading, .writing]) else {
            throw SystemError(.epollControl, EINVAL, detail: "interest \(interest.rawValue) for descriptor \(fd)")
        }
        let present = livingHandler(of: fd)
        guard let group = present == nil ? WatchGroup(fd, self) : present as? WatchGroup else {
            throw .isWatchedAlready(fd)
        }
        try group.add(interest, handler, CallSite(file, line))
        return Watch(.descriptor(group, generation: group.generation))
    }
}

extension SystemError {
    static func isWatchedAlready(_ fd: CInt) -> SystemError {
        SystemError(.epollControl, EEXIST, detail: "descriptor \(fd) is watched already")
    }
}
