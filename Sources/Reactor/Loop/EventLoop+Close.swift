import Glibc
import Synchronization

// How a loop ends, with its thread or with the scope of `withLoop`, while other threads still know it.

extension EventLoop {
    /// Ends the loop: what is ready or waits is let go, unrun, and reported; descriptors are closed; mail is refused.
    func close() {
        hasEnded = true
        if isParked { unpark() }
        mailbox.close(into: &ready)
        let undrivenPlaces = undrivenPlaces
        let undelivered = letGoOfEverything() + waitingHandlers
        recycledWaiter.take()?.release()
        endUndrivenDetection(undelivered > 0 ? undrivenPlaces : [])
        if undelivered > 0 { LoopEvent.send(.undelivered(undelivered)) }
        let door = door.take()
        door?.ended.open()
        // Who has learned of the end may have settled what was waited for here. It has been counted.
        _ = letGoOfEverything()
        hasReleasedAll = true
        awaitOwedWakes()
        if timerDescriptor >= 0 { kernel.close(timerDescriptor) }
        poller.close(kernel)
        // Last: from here on Swift's jobs of this loop run on another thread, and use what was this one's.
        defer { isOver.open() }
        guard waitingHandlers > 0 else { return }
        // Handlers still wait for promises that live on, and know this object by its address. Some may have been refused
        // by the mailbox already, which has taken the count below zero.
        let kept = Unmanaged.passRetained(self)
        if outstandingHandlers.add(waitingHandlers, ordering: .acquiringAndReleasing).newValue == 0 { kept.release() }
    }

    /// Lets go of what is ready or waits, unrun; how much of it is to be reported is the answer.
    private func letGoOfEverything() -> Int {
        var undelivered = 0
        // Letting go of one thing may make another ready, or start a timer: until nothing is left.
        while true {
            while let job = ready.popFirst() {
                job._withUnsafeGuaranteedRef {
                    if $0.isReportedUndelivered { undelivered += 1 }
                    $0.discardAndRelease()
                }
            }
            let jobs = timers.removeAll()
            let handlers = poller.removeAllHandlers()
            for job in jobs { Unmanaged.passRetained(job)._withUnsafeGuaranteedRef { $0.discardAndRelease() } }
            for handler in handlers { handler.loopWillEnd() }
            closeSignals()
            let removed = hooks.removeAll()
            if jobs.isEmpty && handlers.isEmpty && ready.isEmpty && timers.isEmpty && poller.waiting == 0
                && removed.isEmpty
            {
                return undelivered
            }
        }
    }

    /// A thread that took us from "parked" writes the eventfd a moment later: it must not find another's descriptor
    /// under that number.
    private func awaitOwedWakes() {
        let fd = wakeDescriptor.load(ordering: .relaxed)
        guard fd >= 0 else { return }
        // In a forked child that thread does not exist, and what it has written is the parent's to read.
        while wakesOwed > 0 && !isForked {
            var seen: UInt64 = 0
            guard kernel.eventRead(fd, &seen) > 0 else {
                sched_yield()
                continue
            }
            wakesOwed -= min(seen, wakesOwed)
        }
        kernel.close(fd)
    }

    /// Any thread: one handler that waited on this loop when it ended is gone. The last lets the object go.
    package func outstandingHandlerDidEnd() {
        if outstandingHandlers.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 {
            Unmanaged.passUnretained(self).release()
        }
    }

    private func closeSignals() {
        while let last = signals.handlers.last { _ = signals.remove(last.id) }
        _ = signals.forgetArrived()
        guard let door = signals.door else { return }
        signals.door = nil
        kernel.close(SignalRegistry.close(door))
    }
}
