import CLinux
import Synchronization

// Work that other threads do for a loop, such as jobs of a pool or async tasks. It is counted, so that `run()` does not
// return before it ends.

extension LoopRemote {
    /// Any thread: counts the beginning of work on another thread whose result this loop waits for. The loop stays
    /// alive until `endExternalWork` has been called as many times.
    package func beginExternalWork() { loop.shared.work.externalWork.begin() }

    /// Any thread: counts a handler of this loop's thread that was given to a dispatcher, which may never run it. The
    /// handler does not keep the loop alive, but it may still wake the loop.
    package func beginDispatchedJob() { loop.shared.work.dispatchedJobs.add(1, ordering: .relaxed) }

    /// Any thread: counts the end of such a handler, whose result has been settled. May be called after the loop has
    /// ended.
    package func endDispatchedJob() { loop.shared.work.dispatchedJobs.subtract(1, ordering: .relaxed) }

    /// Any thread: counts the end of external work. If its result concerns the loop, post it first, then call this.
    /// Wakes a waiting loop, which may have nothing left to do. May be called after the loop has ended.
    package func endExternalWork() { loop.endExternalWork() }

    /// Whether the loop's clock is virtual. Any thread: it never changes.
    package var isVirtual: Bool { loop.clock.isVirtual }

    /// Whether the loop has this address. Any thread.
    package func isRemote(ofLoopAt address: UnsafeMutableRawPointer?) -> Bool {
        address == Unmanaged.passUnretained(loop).toOpaque()
    }

    /// A piece of external work waits for a result of this loop, so the loop's virtual clock may advance. Call it once
    /// the wait can be ended by the result, and not before: the result may come at any time, and the clock must then
    /// stand still. Any thread.
    package func beginWaitingForLoop() {
        if loop.shared.work.externalWork.beginWaiting() { loop.wakeForExternalWork() }
    }

    /// The wait has ended, and the work continues: called on the thread that ends the wait, before the work can
    /// continue. If this comes before `beginWaitingForLoop`, the work counts as busy twice until then. Any thread.
    package func endWaitingForLoop() { loop.shared.work.externalWork.endWaiting() }
}

extension EventLoop {
    /// Any thread: as `LoopRemote.endExternalWork`.
    func endExternalWork() { if shared.work.externalWork.end() { wakeForExternalWork() } }

    /// Makes the loop check again what it waits for. Any thread, and also after the loop has ended.
    fileprivate func wakeForExternalWork() {
        guard clinux_get_current_loop() != Unmanaged.passUnretained(self).toOpaque() else { return }
        // One at a time: possibly no thread ever drives this loop.
        guard !shared.work.isWakeJobPosted.exchange(true, ordering: .acquiringAndReleasing) else { return }
        let job = Unmanaged<Job>.passRetained(
            // The loop retains the job in turn, until it runs the job or ends. After this exchange, it sees everything
            // that a thread did before it found the flag set.
            InternalJob { _ = self.shared.work.isWakeJobPosted.exchange(false, ordering: .acquiringAndReleasing) })
        if !shared.post(job) { job.release() }
    }

    /// The loop that must count the work that this thread dispatches: this loop, or the loop on whose behalf the thread
    /// works.
    package var loopToNotify: LoopRemote { requestingLoop ?? remote }

    /// Runs `body`, a job of a pool on whose thread this loop is, on behalf of `home`.
    /// - Returns: whether the job has ended. If not, it has left something on this loop; `home` is notified when the
    ///   ready jobs have run and the rest has been released.
    package func work(for home: LoopRemote, _ body: () -> Void) -> Bool {
        requestingLoop = home
        body()
        if hasNoReadyJobs && !hasWaiters { requestingLoop = nil }
        return requestingLoop == nil
    }

    /// Whether other threads also work for the loop on whose behalf this thread works: the current job may have
    /// dispatched that work itself.
    var requestingLoopAwaitsOthers: Bool {
        // The current job counts as one.
        guard let requestingLoop = requestingLoop else { return false }
        return requestingLoop.loop.shared.work.externalWork.count > 1
    }

    var hasNoReadyJobs: Bool { !jobs.hasJobs && shared.waker.mailbox.isEmpty }
}
