// The jobs of a loop; see `LoopJobs`.

extension EventLoop {
    /// Runs `body` on this loop after all jobs that are ready already.
    ///
    /// ```swift
    /// EventLoop.current.enqueue { print("after the handlers that are ready now") }
    /// ```
    ///
    /// It runs in the current turn if one is under way, otherwise in the next. Once the loop has ended, `body` is
    /// released without being called.
    /// - Parameter body: called at most once, on the loop's thread.
    public func enqueue(_ body: @escaping () -> Void, file: StaticString = #fileID, line: UInt = #line) {
        enqueue(ClosureJob(body, CallSite(file, line)))
    }

    /// Queues a job object, which must not be in a queue already. Once the loop has ended, the job is discarded.
    package func enqueue(_ job: Job) {
        assertOwner()
        if hasReleasedAll { return jobs.discard(.passRetained(job)) }
        enqueueOwned(.passRetained(job))
    }

    /// Queues a job that runs in the current turn when no ready job is left: work that several ready jobs have prepared
    /// is then done once. Between turns it becomes a ready job.
    package func enqueueAtEndOfTurn(_ job: Job) {
        guard isBeingDriven && !hasReleasedAll else { return enqueue(job) }
        assertOwner()
        jobs.appendAtEndOfTurn(.passRetained(job))
    }

    /// Queues a job that runs next: when the current job, or the handler of the current event, has returned. For work
    /// that cannot wait for the events that the kernel has reported and the jobs that are ready.
    package func enqueueNext(_ job: Job) {
        guard isBeingDriven && !hasReleasedAll else { return enqueue(job) }
        assertOwner()
        jobs.prepend(.passRetained(job))
    }

    /// Queues a job and takes over the caller's reference.
    @inlinable @inline(__always)
    package func enqueueOwned(_ job: Unmanaged<Job>) { jobs.ready.append(job) }

    /// The first part of a turn: runs ready jobs, within the budget of a turn.
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

    /// Queues the jobs that other threads have posted.
    @inlinable @inline(__always)
    package func takeMail() { if !shared.waker.mailbox.isEmpty { collectMail() } }

    @usableFromInline
    func collectMail() {
        if waker.isParked { unpark() }
        shared.waker.mailbox.take(into: &jobs.ready)
    }

    /// Keeps a job that has run for `takeSpare`, with the caller's reference, which must be the only one.
    /// - Returns: false if the loop keeps no more; the reference is then still the caller's.
    @inlinable @inline(__always)
    package func keepSpare(_ job: Unmanaged<Job>) -> Bool { jobs.spare.keep(job) }

    /// A kept job, with its only reference.
    @inlinable @inline(__always)
    package func takeSpare() -> Unmanaged<Job>? { jobs.spare.take() }
}
