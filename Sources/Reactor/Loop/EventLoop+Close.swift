import Glibc
import Synchronization

// How a loop ends, with its thread or with the scope of `withLoop`, while other threads may still refer to it.

extension EventLoop {
    /// Ends the loop. Ready and waiting jobs are released without being run, and reported. Descriptors are closed, and
    /// the mailbox refuses further jobs.
    func close() {
        lifecycle.hasEnded = true
        if waker.isParked { unpark() }
        nameThreadForEndedLoopsIfNeeded()
        shared.waker.mailbox.close(into: &queues.ready)
        runEndings()
        let undrivenPlaces = undrivenPlaces
        let undelivered = releaseEverything() + waitingHandlers
        lifecycle.attachment.take()?.release()
        endUndrivenDetection(undelivered > 0 ? undrivenPlaces : [])
        if undelivered > 0 { LoopEvent.send(.undelivered(undelivered)) }
        releaseLocals()
        let remote = lifecycle.remote.take()
        remote?.ended.open()
        // A listener of `ended` may have brought what a handler of this loop waited for. That handler has
        // been counted already.
        _ = releaseEverything()
        lifecycle.hasReleasedAll = true
        queues.spare.close()
        queues.spareNodes.close()
        awaitWakes()
        if timers.descriptor >= 0 { kernel.close(timers.descriptor) }
        poller.close(kernel)
        // Must be last: from here on, Swift's jobs of this loop run on another thread and use state that belonged to
        // this thread.
        defer {
            shared.lifecycle.isOver.open()
            startThreadForEndedLoops()
        }
        guard waitingHandlers > 0 else { return }
        // Handlers still wait for results that outlive the loop, and refer to this object by its address. The mailbox
        // may have refused some of these handlers already, which has taken the count below zero.
        let kept = Unmanaged.passRetained(self)
        if shared.work.outstandingHandlers.add(waitingHandlers, ordering: .acquiringAndReleasing).newValue == 0 {
            kept.release()
        }
    }

    /// Releases everything that is ready or waits, without running it.
    /// - Returns: the number of released jobs to report as undelivered.
    private func releaseEverything() -> Int {
        var undelivered = 0
        // Releasing one object may make a job ready or start a timer, so this repeats until nothing is left.
        while true {
            while let job = queues.ready.popFirst() ?? queues.endOfTurn.popFirst() {
                job._withUnsafeGuaranteedRef {
                    if $0.isReportedUndelivered { undelivered += 1 }
                    $0.discardAndRelease()
                }
            }
            let actions = timers.heap.removeAll()
            let handlers = poller.removeAllHandlers()
            for case .job(let job) in actions {
                Unmanaged.passRetained(job)._withUnsafeGuaranteedRef { $0.discardAndRelease() }
            }
            for handler in handlers { handler.loopWillEnd() }
            closeSignals()
            let removed = hooks.removeAll()
            if actions.isEmpty && handlers.isEmpty && !queues.hasJobs && timers.heap.isEmpty && poller.waiting == 0
                && removed.isEmpty
            {
                return undelivered
            }
        }
    }

    /// Waits for the writes of other threads to the eventfd. A thread that found the mailbox parked writes the eventfd
    /// a moment later; by then the number must not belong to another descriptor.
    private func awaitWakes() {
        let fd = shared.waker.descriptor.load(ordering: .relaxed)
        guard fd >= 0 else { return }
        // A forked child does not have that thread.
        while shared.waker.finishedWakes.load(ordering: .acquiring) < waker.wakes && !isForked { sched_yield() }
        kernel.close(fd)
    }

    /// Any thread: counts the end of one handler that still waited when the loop ended. The last one releases the loop
    /// object.
    package func outstandingHandlerDidEnd() {
        if shared.work.outstandingHandlers.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 {
            Unmanaged.passUnretained(self).release()
        }
    }

    private func closeSignals() {
        while let last = signals.handlers.last { signals.remove(last.id)?.end() }
        guard let slot = signals.slot else { return }
        signals.slot = nil
        kernel.close(SignalRegistry.close(slot))
    }
}
