import ReactorLibc
import Synchronization

// How a loop ends, with its thread or at the end of `withLoop`, while other threads may still refer to it.

extension EventLoop {
    /// Ends the loop. Ready and waiting jobs are released without being run, and reported. Descriptors are closed, and
    /// the mailbox refuses further jobs.
    func close() {
        shared.life.advance(to: .ending)
        outsideWaiters.close()
        if waker.isParked { unpark() }
        // A body may cancel others. None is added any more.
        for id in ending.ids { ending.take(id)?() }
        let unrun = unrunCallSites
        let withdrawn = withdrawOutsideWaiters()
        shared.waker.mailbox.close(into: &jobs.ready)
        let undelivered = withdrawn + releaseEverything() + waitingHandlers
        attachment.take()?.release()
        endObservation()
        if undelivered > 0 && !vanishes {
            UnrunWork.report(unrun)
            LoopEvent.send(.undelivered(undelivered))
        }
        shared.life.advance(to: .releasingLocals)
        // The `deinit` of a value may use another one, which exists until it is released.
        while ending.takeLastLocal() != nil {}
        ownRemote = nil
        shared.life.ended.open()
        // The `deinit` of a value, or who has learned of the end, may have made something ready.
        _ = releaseEverything()
        shared.life.advance(to: .released)
        LivingLoops.remove(self)
        jobs.spare.close()
        waker.close(shared.waker, kernel, isForked: isForked)
        poller.close(kernel)
        buffers.free()
        shared.life.advance(to: .over)
        // A cleanup may make something ready, too.
        while !shared.life.cleanups.openUnlessWaiting() { _ = releaseEverything() }
        // Must be last: from here on, Swift's jobs of this loop run on another thread and use state that belonged to
        // this thread.
        shared.life.isOver.open()
        EndedLoopJobs.awaitThread()
    }

    /// Withdraws and releases the waiters that other threads could notify, while the mailbox is still open. If a thread
    /// has already settled a waiter's promise, this waits for it to post the waiter: nothing of a loop may be released
    /// on another thread. No waiter is added any more.
    /// - Returns: the number of released jobs to report as undelivered.
    private func withdrawOutsideWaiters() -> Int {
        var undelivered = 0
        while outsideWaiters.count > 0 {
            var number = outsideWaiters.count
            while number > 0 {
                outsideWaiters[number]._withUnsafeGuaranteedRef {
                    let isReported = $0.isReportedUndelivered
                    if $0.discardIfWaiting() && isReported { undelivered += 1 }
                }
                // Releasing an object may have withdrawn other waiters.
                number = min(number - 1, outsideWaiters.count)
            }
            shared.waker.mailbox.take(into: &jobs.ready)
            let isIdle = jobs.ready.isEmpty
            undelivered += jobs.discardAll()
            // A forked child lacks the threads that would post them.
            if isForked { break }
            if isIdle && outsideWaiters.count > 0 { sched_yield() }
        }
        return undelivered
    }

    /// Releases all jobs, timers, watches and hooks without running them.
    /// - Returns: the number of released jobs to report as undelivered.
    private func releaseEverything() -> Int {
        var undelivered = 0
        // Releasing one object may make a job ready or start a timer, so this repeats until nothing is left.
        while true {
            undelivered += jobs.discardAll()
            let actions = timers.removeAll()
            let handlers = poller.removeAllHandlers()
            for case .job(let job) in actions {
                Unmanaged.passRetained(job)._withUnsafeGuaranteedRef { $0.discardAndRelease() }
            }
            for handler in handlers { handler.loopWillEnd() }
            for watch in signals.removeAll().reversed() { watch.end() }
            signals.close(kernel)
            let hadHooks = hooks.removeAll()
            if actions.isEmpty && handlers.isEmpty && !jobs.hasJobs && timers.isEmpty && poller.waiting == 0
                && !hadHooks
            {
                return undelivered
            }
        }
    }

    /// Calls `body` on the loop's thread when the loop ends, before everything that waits there is released.
    /// - Returns: an identifier for `forgetEnding`. Once the loop has ended, `body` is released without being called.
    package func whenEnding(_ body: @escaping () -> Void) -> Int { hasEnded ? 0 : ending.add(body) }

    /// Releases a body that was passed to `whenEnding`, if it has not been called.
    package func forgetEnding(_ id: Int) { _ = ending.take(id) }
}
