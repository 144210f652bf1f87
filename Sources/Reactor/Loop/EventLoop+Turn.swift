// How a loop runs its ready jobs.

extension EventLoop {
    /// How many jobs run before the loop looks at descriptors and timers again, so that a chain of jobs that feeds
    /// itself starves neither. A job is some 100 ns of work, so a batch takes 0.1 ms.
    private static var jobBudget: Int { 1024 }
    /// The budget of a batch in nanoseconds, for long jobs.
    private static var timeBudget: Int64 { 2_000_000 }
    /// The number of jobs after which the clock is read first, and the largest number between two readings. Few turns
    /// have as many as four jobs, so most turns do not read the clock for them; a reading costs about as much as a job.
    private static var firstLook: Int { 4 }
    private static var longestStretch: Int { 64 }

    /// Runs `body` on this loop after all jobs that are ready already.
    ///
    /// It runs in the current turn if one is under way, otherwise in the next. Once the loop has ended, `body` is
    /// released without being called.
    /// - Parameters:
    ///   - body: called at most once, on the loop's thread.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    public func enqueue(_ body: @escaping () -> Void, file: StaticString = #fileID, line: UInt = #line) {
        enqueue(job(body, file, line))
    }

    /// Queues a job object, which must not be in a queue already. Once the loop has ended, the job is discarded.
    package func enqueue(_ job: Job) {
        assertOwner()
        if hasReleasedAll { return discard(.passRetained(job)) }
        queues.ready.append(.passRetained(job))
    }

    /// Queues a job that runs when no job is ready any more, in the current turn, if one is under way: what several
    /// ready jobs have prepared can then be done once. A job that is queued between turns is a ready job.
    package func enqueueAtEndOfTurn(_ job: Job) {
        guard isBeingDriven && !hasReleasedAll else { return enqueue(job) }
        assertOwner()
        if queues.endOfTurn.isEmpty { queues.batchesBeforeEnd = 0 }
        queues.endOfTurn.append(.passRetained(job))
    }

    /// Runs ready jobs, at most a budget of them, and then those for the end of the turn. Returns whether there were
    /// any.
    @inline(__always)
    func drain() -> Bool {
        guard queues.hasJobs else { return false }
        drainReady()
        return true
    }

    @inline(never)
    private func drainReady() {
        var left = Self.jobBudget
        if meter.isTiming { beginTiming() }
        var deadline = Int64.max
        var areLong = false
        // If the jobs of the last batch were long, the time is measured from the first job on; otherwise the clock is
        // read less and less often.
        var nextLook = left - Self.firstLook
        if queues.hasLongJobs {
            deadline = clock.now.nanoseconds &+ Self.timeBudget
            nextLook = left - 1
        }
        while left > 0, let job = queues.ready.popFirst() ?? queues.endOfTurn.popFirst() {
            left -= 1
            if meter.isTiming { runTimed(job) } else { job._withUnsafeGuaranteedRef { $0.runAndRelease() } }
            guard left <= nextLook else { continue }
            let done = Self.jobBudget - left
            let now = clock.now.nanoseconds
            if deadline == .max { deadline = now &+ Self.timeBudget }
            if now > deadline {
                areLong = done < Self.longestStretch
                break
            }
            nextLook = left - (queues.hasLongJobs && done < Self.longestStretch ? 1 : min(done, Self.longestStretch))
        }
        if queues.hasLongJobs != areLong { queues.hasLongJobs = areLong }
        if !queues.endOfTurn.isEmpty { left -= runLateEndOfTurnJobs(isOverTime: left > 0) }
        meter.counters.jobs += Self.jobBudget - left
    }

    /// The number of batches of short jobs that run before the jobs for the end of the turn: a few milliseconds
    /// together. Fifty clients with 16 requests each cause some 10,000 jobs, whose answers would otherwise be sent in
    /// ten parts.
    private static var mostBatches: UInt8 { 8 }

    /// Called when the turn's budget of jobs is used up and further jobs are ready. These may add work for the jobs of
    /// the end of the turn, which therefore wait for them, unless jobs are long or `mostBatches` is reached. Jobs of
    /// the end of the turn that they enqueue themselves are left for later.
    /// - Returns: the number of jobs that were run.
    @inline(never)
    private func runLateEndOfTurnJobs(isOverTime: Bool) -> Int {
        if !isOverTime && queues.batchesBeforeEnd < Self.mostBatches {
            queues.batchesBeforeEnd += 1
            return 0
        }
        queues.batchesBeforeEnd = 0
        let count = queues.endOfTurn.count
        for _ in 0..<count {
            // A nested turn may have run the rest.
            guard let job = queues.endOfTurn.popFirst() else { break }
            if meter.isTiming { runTimed(job) } else { job._withUnsafeGuaranteedRef { $0.runAndRelease() } }
        }
        return count
    }

    /// The first part of a turn only: runs ready jobs, within the budget of a turn.
    package func runReadyJobs() {
        assertOwner()
        whileDriven { runThoseReady() }
    }

    func runThoseReady() {
        if queues.inline.isRunning || queues.discarded.isRunning { runThoseInterrupted() }
        takeMail()
        _ = drain()
    }

    /// Called inside an inline job, or in a `deinit` of a discarded object: runs the jobs that wait behind it, which
    /// must not wait for its return.
    @inline(never)
    private func runThoseInterrupted() {
        if queues.inline.isRunning {
            completeInterrupted()
            runInlineJobs()
            queues.inline.resume()
        }
        // The turn may be long, so jobs to be discarded do not wait for the `deinit` to return.
        discardWaitingJobs()
    }

    // MARK: Inline jobs, for the layer above

    /// Runs `job` and releases the caller's reference: at once, or after the inline job that is running.
    package func runInline(_ job: Unmanaged<Job>) {
        if queues.inline.begin(job) { runInlineJobs() }
    }

    /// Runs `job` as `runInline(_:)` does, on behalf of a caller that has an operation under way. If the job runs at
    /// once and turns the loop, `complete` is called with `context` before that turn, which may depend on the
    /// operation.
    package func runInline(
        _ job: Unmanaged<Job>, interrupting context: UnsafeMutableRawPointer, complete: Completion
    ) {
        guard queues.inline.begin(job) else { return }
        let outer = queues.interrupted
        queues.interrupted = JobQueues.Interrupted(context: context, complete: complete)
        runInlineJobs()
        queues.interrupted = outer
    }

    /// A C function, so that a loop can keep it without counting references.
    package typealias Completion = @convention(c) (UnsafeMutableRawPointer) -> Void

    /// Called before a turn inside an inline job. Inline jobs that `complete` makes wait for `runInlineJobs`.
    func completeInterrupted() {
        guard let interrupted = queues.interrupted.take() else { return }
        interrupted.complete(interrupted.context)
    }

    /// Returns whether there was an inline job.
    @discardableResult
    func runInlineJobs() -> Bool {
        var hasRun = false
        while let job = queues.inline.popFirst() {
            job._withUnsafeGuaranteedRef { $0.runAndRelease() }
            hasRun = true
        }
        return hasRun
    }

    /// Discards `job`, which a loop that has ended has refused: at once, or after the job that is being discarded.
    /// Discards are not nested, since a released job may release the next one.
    package func discard(_ job: Unmanaged<Job>) {
        if queues.discarded.begin(job) { discardWaitingJobs() }
    }

    private func discardWaitingJobs() {
        while let job = queues.discarded.popFirst() { job._withUnsafeGuaranteedRef { $0.discardAndRelease() } }
    }

    /// Calls `body`, which releases an object of the user's, and then discards the jobs that its `deinit`s have handed
    /// to `discard`. No job is therefore discarded inside another. Must not be nested; see `isDiscarding`.
    package func discarding(_ body: () -> Void) {
        queues.discarded.resume()
        body()
        discardWaitingJobs()
    }

    /// Whether a discard is under way.
    package var isDiscarding: Bool { queues.discarded.isRunning }

    /// Queues a job and takes over the caller's reference.
    @inlinable @inline(__always)
    package func enqueueOwned(_ job: Unmanaged<Job>) { queues.ready.append(job) }

    /// Keeps a job that has run for `takeSpare`, with the caller's reference, to which no other leads.
    /// - Returns: false if the loop keeps no more; the reference is then still the caller's.
    @inlinable @inline(__always)
    package func keepSpare(_ job: Unmanaged<Job>) -> Bool { queues.spare.keep(job) }

    /// A job that was kept, with its only reference.
    @inlinable @inline(__always)
    package func takeSpare() -> Unmanaged<Job>? { queues.spare.take() }

    /// As `keepSpare`, for jobs of another class, which have a list of their own.
    package func keepSpareNode(_ job: Unmanaged<Job>) -> Bool { queues.spareNodes.keep(job) }

    /// As `takeSpare`, from that list.
    package func takeSpareNode() -> Unmanaged<Job>? { queues.spareNodes.take() }

    /// Queues the jobs that other threads have posted.
    @inlinable @inline(__always)
    package func takeMail() { if !shared.waker.mailbox.isEmpty { collectMail() } }

    @usableFromInline
    func collectMail() {
        if waker.isParked { unpark() }
        shared.waker.mailbox.take(into: &queues.ready)
    }
}
