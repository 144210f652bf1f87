import ReactorLibc

// Another thread may release an object that belongs to a loop: an actor or a task that held a connection can end on any
// thread. The cleanup of the object's descriptor and timers still takes place on the loop's own thread.

extension EventLoop {
    package var isOwnedByThisThread: Bool { shared.life.isOwnedByThisThread }

    /// For the `deinit` of an object that belongs to this loop, on any thread: runs `body` on the loop's thread, at
    /// once if that is the calling thread, and later otherwise. Once the loop has ended, it runs at once on any thread.
    ///
    /// No other thread may use what `body` has captured.
    package func performCleanup(_ body: @escaping () -> Void) {
        if isOwnedByThisThread { return body() }
        // The loop retains the job in turn, until it runs the job or ends.
        let onThisLoop = { withExtendedLifetime(self) { body() } }
        let cleanup = Unmanaged<Job>.passRetained(InternalJob(onThisLoop, ifLoopEnds: onThisLoop))
        if shared.post(cleanup) { return }
        // A forked child has no other thread, and another one of the parent may have held the lock.
        if isForked { return cleanup.takeRetainedValue().run() }
        // The loop's thread is ending the loop, and may use what the body uses.
        // Sound, since only the thread that runs it touches the job.
        nonisolated(unsafe) let refused = cleanup
        shared.life.cleanups.whenOpen { refused.takeRetainedValue().run() }
    }

    /// Forgets and closes a descriptor. Call it on the loop's thread, or on any thread once the loop has ended.
    package func closeDescriptor(_ fd: CInt) {
        guard isOwnedByThisThread else {
            // The loop has ended and forgotten every descriptor.
            _ = ReactorLibc.close(fd)
            return
        }
        forget(fd)
        kernel.close(fd)
    }
}
