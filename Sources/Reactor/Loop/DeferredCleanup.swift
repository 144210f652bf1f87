import ReactorLibc

// Any thread may release a loop's object, because actors and tasks may end anywhere. The loop's thread cleans up.

extension EventLoop {
    package var isOwnedByThisThread: Bool { shared.life.isOwnedByThisThread }

    /// Runs `body` on the loop's thread: at once if called there or if the loop has ended, otherwise later. For a
    /// `deinit` on any thread. No other thread may use the captures of `body`.
    package func performCleanup(_ body: @escaping () -> Void) {
        if isOwnedByThisThread { return body() }
        // The loop retains the job until the job runs or the loop ends.
        let onThisLoop = { withExtendedLifetime(self) { body() } }
        let cleanup = Unmanaged<Job>.passRetained(InternalJob(onThisLoop, ifLoopEnds: onThisLoop))
        if shared.post(cleanup) { return }
        // A forked child has only this thread, and a thread of the parent may have held the lock.
        if isForked { return cleanup.takeRetainedValue().run() }
        // The ending loop's thread may use the same objects as `body`. Sound: only the thread that runs the job touches
        // it.
        nonisolated(unsafe) let refused = cleanup
        shared.life.cleanups.whenOpen { refused.takeRetainedValue().run() }
    }

    /// Forgets and closes a descriptor. Called on the loop's thread, or on any thread once the loop has ended.
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
