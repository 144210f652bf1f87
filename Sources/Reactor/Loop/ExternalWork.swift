import CLinux
import Synchronization

// Other threads' work for a loop, such as pool jobs or async tasks, counted so that `run()` waits for it.

extension LoopRemote {
    /// Begins external work whose result this loop waits for. The loop stays alive until `endExternalWork` has been
    /// called as many times. Any thread.
    package func beginExternalWork() { loop.shared.work.externalWork.begin() }

    /// Begins a handler given to a dispatcher, which may never run it. The handler may wake the loop but does not keep
    /// it alive. Any thread.
    package func beginDispatchedJob() { loop.shared.work.dispatchedJobs.add(1, ordering: .relaxed) }

    /// Ends a dispatched handler, once its result is settled. Allowed after the loop's end. Any thread.
    package func endDispatchedJob() { loop.shared.work.dispatchedJobs.subtract(1, ordering: .relaxed) }

    /// Ends external work, whose result must have been posted. Wakes the loop, which may have nothing left to do.
    /// Allowed after the loop's end. Any thread.
    package func endExternalWork() { loop.endExternalWork() }

    /// True when the loop's clock is virtual, which never changes. Any thread.
    package var isVirtual: Bool { loop.clock.isVirtual }

    /// Any thread.
    package func isRemote(ofLoopAt address: UnsafeMutableRawPointer?) -> Bool {
        address == Unmanaged.passUnretained(loop).toOpaque()
    }

    /// Notes that external work waits for this loop, so a virtual clock may advance. Call it only once the result can
    /// end the wait, which must stop the clock again. Any thread.
    package func beginWaitingForLoop() {
        if loop.shared.work.externalWork.beginWaiting() { loop.wakeForExternalWork() }
    }

    /// Called on the thread that ends the wait, before the work can continue. If it precedes `beginWaitingForLoop`, the
    /// work counts as busy twice until then. Any thread.
    package func endWaitingForLoop() { loop.shared.work.externalWork.endWaiting() }
}

extension EventLoop {
    /// Any thread.
    func endExternalWork() { if shared.work.externalWork.end() { wakeForExternalWork() } }

    /// Makes the loop check its reasons to wait. Any thread, also after the loop's end.
    fileprivate func wakeForExternalWork() {
        guard clinux_get_current_loop() != Unmanaged.passUnretained(self).toOpaque() else { return }
        // One job at a time, since perhaps no thread ever drives this loop.
        guard !shared.work.isWakeJobPosted.exchange(true, ordering: .acquiringAndReleasing) else { return }
        let job = Unmanaged<Job>.passRetained(
            // The loop retains the job until the job runs or the loop ends. After this exchange, the loop sees
            // everything that threads did before they found the flag set.
            InternalJob { _ = self.shared.work.isWakeJobPosted.exchange(false, ordering: .acquiringAndReleasing) })
        if !shared.post(job) { job.release() }
    }

    /// The loop that counts this thread's dispatched work: this one, or the one for which the thread works.
    package var loopToNotify: LoopRemote { requestingLoop ?? remote }

    /// Runs `body`, a job in the pool of this loop's thread, on behalf of `home`.
    /// - Returns: true if the job has ended. If it left something on this loop, `home` is notified later, when that has
    ///   run or been released.
    package func work(for home: LoopRemote, _ body: () -> Void) -> Bool {
        requestingLoop = home
        body()
        if hasNoReadyJobs && !hasWaiters { requestingLoop = nil }
        return requestingLoop == nil
    }

    /// True when other threads also work for the requesting loop, perhaps dispatched by this job.
    var requestingLoopAwaitsOthers: Bool {
        // Excludes the current job, which is counted too.
        guard let requestingLoop = requestingLoop else { return false }
        return requestingLoop.loop.shared.work.externalWork.count > 1
    }

    var hasNoReadyJobs: Bool { !jobs.hasJobs && shared.waker.mailbox.isEmpty }
}
