import ReactorLibc

// Any thread may release an object of a loop, because actors and tasks may end anywhere. The loop's thread cleans up.

extension EventLoop {
    package var isOwnedByThisThread: Bool { shared.life.isOwnedByThisThread }

    /// For a `deinit` on any thread. Runs `body` on the loop's thread: at once if the caller is there or the loop has
    /// ended, or else later.
    ///
    /// No other thread may use the captures of `body`.
    package func performCleanup(_ body: @escaping () -> Void) {
        if isOwnedByThisThread { return body() }
        // The loop retains the job until the job runs or the loop ends.
        let onThisLoop = { withExtendedLifetime(self) { body() } }
        let cleanup = Unmanaged<Job>.passRetained(InternalJob(onThisLoop, ifLoopEnds: onThisLoop))
        if shared.post(cleanup) { return }
        // A forked child has only this thread, and a thread of the parent may have held the lock.
        if isForked { return cleanup.takeRetainedValue().run() }
        // The ending loop's thread may use the same objects as the body. Sound: only the thread that runs the job
        // touches it.
        nonisolated(unsafe) let refused = cleanup
        shared.life.cleanups.whenOpen { refused.takeRetainedValue().run() }
    }

    /// Forgets and closes a descriptor. On the loop's thread, or on any thread once the loop has ended.
    package func closeDescriptor(_ fd: CInt) {
        guard isOwnedByThisThread else {
            // An ended loop has forgotten every descriptor.
            _ = ReactorLibc.close(fd)
            return
        }
        forget(fd)
        kernel.close(fd)
    }
}
