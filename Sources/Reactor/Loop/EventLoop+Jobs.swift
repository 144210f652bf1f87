extension EventLoop {
    /// Runs `body` on this loop after all jobs that are already ready.
    ///
    /// ```swift
    /// EventLoop.current.enqueue { print("after the handlers that are ready now") }
    /// ```
    ///
    /// `body` runs in the current turn, or in the next turn if none is in progress. An ended loop releases `body`
    /// uncalled.
    /// - Parameter body: called at most once, on the loop's thread.
    public func enqueue(_ body: @escaping () -> Void, file: StaticString = #fileID, line: UInt = #line) {
        enqueue(ClosureJob(body, CallSite(file, line)))
    }

    /// Queues a job, which must be in no queue. An ended loop discards the job.
    package func enqueue(_ job: Job) {
        assertOwner()
        if hasReleasedAll { return jobs.discard(.passRetained(job)) }
        enqueueOwned(.passRetained(job))
    }

    /// Queues a job to run in the current turn once no ready job is left, so several ready jobs can share its work.
    /// Between turns, the job becomes a ready job.
    package func enqueueAtEndOfTurn(_ job: Job) {
        guard isBeingDriven && !hasReleasedAll else { return enqueue(job) }
        assertOwner()
        jobs.appendAtEndOfTurn(.passRetained(job))
    }

    /// Queues a job to run when the current job or event handler returns, before all ready jobs and reported events.
    package func enqueueNext(_ job: Job) {
        guard isBeingDriven && !hasReleasedAll else { return enqueue(job) }
        assertOwner()
        jobs.prepend(.passRetained(job))
    }

    /// Queues a job, taking over the caller's reference.
    @inlinable @inline(__always)
    package func enqueueOwned(_ job: Unmanaged<Job>) { jobs.ready.append(job) }

    /// Runs the first part of a turn.
    package func runReadyJobs() {
        assertOwner()
        whileDriven { runBatchOfJobs() }
    }

    @inline(__always)
    func runBatchOfJobs() {
        let isInsideDiscard = jobs.runInterruptedJobs()
        takeMail()
        _ = jobs.run()
        if isInsideDiscard { jobs.resumeDiscarding() }
    }

    @inlinable @inline(__always)
    package func takeMail() { if !shared.waker.mailbox.isEmpty { collectMail() } }

    @usableFromInline
    func collectMail() {
        if waker.isParked { unpark() }
        shared.waker.mailbox.take(into: &jobs.ready)
    }

    /// Keeps a finished job for `takeSpare`, with the caller's reference, which must be the only one.
    /// - Returns: false if there is no room; the caller keeps the reference.
    @inlinable @inline(__always)
    package func keepSpare(_ job: Unmanaged<Job>) -> Bool { jobs.spare.keep(job) }

    /// Takes a kept job, with its only reference.
    @inlinable @inline(__always)
    package func takeSpare() -> Unmanaged<Job>? { jobs.spare.take() }
}
