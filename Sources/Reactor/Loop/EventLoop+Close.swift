import ReactorLibc
import Synchronization

// Other threads may still refer to an ending loop.

extension EventLoop {
    /// Ends the loop. Releases and reports ready and waiting jobs, and closes the descriptors and the mailbox.
    func close() {
        shared.life.advance(to: .ending)
        crossThreadWaiters.close()
        if waker.isParked { unpark() }
        // A callback may cancel others. None can be added now.
        for id in ending.ids { ending.take(id)?() }
        let unrun = unrunCallSites
        let withdrawn = withdrawCrossThreadWaiters()
        shared.waker.mailbox.close(into: &jobs.ready)
        let undelivered = withdrawn + releaseEverything() + waitingHandlers
        attachment.take()?.release()
        endObservation()
        if undelivered > 0 && !vanishes {
            UndrivenWork.report(unrun)
            LoopEvent.send(.undelivered(undelivered))
        }
        shared.life.advance(to: .releasingLocals)
        // A value's `deinit` may use another value that still exists.
        while ending.takeLastLocal() != nil {}
        ownRemote = nil
        shared.life.ended.open()
        // A `deinit` or a callback may have made something ready.
        _ = releaseEverything()
        shared.life.advance(to: .released)
        LoopRegistry.remove(self)
        jobs.spare.close()
        waker.close(shared.waker, kernel, isForked: isForked)
        poller.close(kernel)
        buffers.free()
        shared.life.advance(to: .over)
        while !shared.life.cleanups.openUnlessWaiting() { _ = releaseEverything() }
        // Last, because this loop's Swift jobs now run on another thread and use this thread's state.
        shared.life.isOver.open()
        EndedLoopJobs.awaitThread()
    }

    /// Withdraws and releases the waiters that other threads could notify, while the mailbox is open. If a thread has
    /// settled a waiter's promise, waits until it has posted the waiter, since only this thread may release the loop's
    /// objects. No waiter can be added now. Returns the number to report.
    private func withdrawCrossThreadWaiters() -> Int {
        var undelivered = 0
        while crossThreadWaiters.count > 0 {
            var number = crossThreadWaiters.count
            while number > 0 {
                crossThreadWaiters[number]._withUnsafeGuaranteedRef {
                    let isReported = $0.isReportedUndelivered
                    if $0.discardIfWaiting() && isReported { undelivered += 1 }
                }
                // The release may have withdrawn other waiters.
                number = min(number - 1, crossThreadWaiters.count)
            }
            shared.waker.mailbox.take(into: &jobs.ready)
            let isIdle = jobs.ready.isEmpty
            undelivered += jobs.discardAll()
            // A forked child lacks the threads that would post.
            if isForked { break }
            if isIdle && crossThreadWaiters.count > 0 { sched_yield() }
        }
        return undelivered
    }

    /// Releases everything without running it.
    /// - Returns: the number to report.
    private func releaseEverything() -> Int {
        var undelivered = 0
        // Repeats until nothing is left, since a release may make a job ready or start a timer.
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

    /// Calls `body` on the loop's thread when the loop ends, before waiting objects are released.
    /// - Returns: an identifier for `forgetEnding`. An ended loop releases `body` uncalled.
    package func whenEnding(_ body: @escaping () -> Void) -> Int { hasEnded ? 0 : ending.add(body) }

    package func forgetEnding(_ id: Int) { _ = ending.take(id) }
}
