// What a loop does with the jobs that are ready.

extension EventLoop {
    /// How many jobs run before descriptors and timers are looked at again, so that a chain of jobs that feeds
    /// itself starves neither. Each is some 100 ns of work, which makes a batch 0.1 ms.
    private static var jobBudget: Int { 1024 }
    /// The same in nanoseconds, for jobs that are long.
    private static var timeBudget: Int64 { 2_000_000 }
    /// After how many jobs the clock is read first, and at the most between two readings. Few turns have as many jobs as the
    /// former, so that most read no clock for them; a reading costs about as much as a job.
    private static var firstLook: Int { 4 }
    private static var longestStretch: Int { 64 }

    /// Runs `body` on this loop after all jobs that are ready already: in this turn if one is under way, otherwise in
    /// the next. Once the loop has ended, `body` is released uncalled.
    public func enqueue(_ body: @escaping () -> Void, file: StaticString = #fileID, line: UInt = #line) {
        enqueue(job(body, file, line))
    }

    /// The same for a job object. It must not stand in a queue already. Once the loop has ended, the job is discarded.
    package func enqueue(_ job: Job) {
        assertOwner()
        if isClosed { return discard(.passRetained(job)) }
        ready.append(.passRetained(job))
    }

    /// Runs ready jobs, at most a budget of them. True if there was one.
    @inline(__always)
    func drain() -> Bool {
        guard !ready.isEmpty else { return false }
        drainReady()
        return true
    }

    @inline(never)
    private func drainReady() {
        var left = Self.jobBudget
        if isTiming { beginTiming() }
        var deadline = Int64.max
        var areLong = false
        // Where the last jobs were long the time is taken from the first of these on; otherwise less and less often.
        var nextLook = left - Self.firstLook
        if hasLongJobs {
            deadline = clock.now.nanoseconds &+ Self.timeBudget
            nextLook = left - 1
        }
        while left > 0, let job = ready.popFirst() {
            left -= 1
            if isTiming { runTimed(job) } else { job._withUnsafeGuaranteedRef { $0.runAndRelease() } }
            guard left <= nextLook else { continue }
            let done = Self.jobBudget - left
            let now = clock.now.nanoseconds
            if deadline == .max { deadline = now &+ Self.timeBudget }
            if now > deadline {
                areLong = done < Self.longestStretch
                break
            }
            nextLook = left - (hasLongJobs && done < Self.longestStretch ? 1 : min(done, Self.longestStretch))
        }
        if hasLongJobs != areLong { hasLongJobs = areLong }
        counters.jobs += Self.jobBudget - left
    }

    /// The first part of a turn alone: ready jobs, within the budget of a turn.
    package func runReadyJobs() {
        assertOwner()
        whileDriven { runThoseReady() }
    }

    func runThoseReady() {
        if inlineJobs.isRunning || discardedJobs.isRunning { runThoseInterrupted() }
        takeMail()
        _ = drain()
    }

    /// Inside an inline job, or a `deinit` of what is discarded: those that wait behind it must not wait for its return.
    @inline(never)
    private func runThoseInterrupted() {
        if inlineJobs.isRunning {
            completeInterrupted()
            runInlineJobs()
            inlineJobs.resume()
        }
        // (The turn may be long, so what is discarded in it does not wait for the `deinit`.)
        discardWaitingJobs()
    }

    /// Whether anything waits on this loop that is not ready.
    var hasWaiters: Bool {
        waitingHandlers > 0 || !timers.isEmpty || poller.waiting > 0 || !signals.handlers.isEmpty
    }

    // MARK: Promise handlers, for the layer above

    /// Runs `job`, and gives up the caller's reference: at once, or after the one that is being run so.
    package func runInline(_ job: Unmanaged<Job>) {
        if inlineJobs.begin(job) { runInlineJobs() }
    }

    /// Runs `job` likewise. If that is at once, and the job turns the loop, `complete` is called with `context` before that
    /// turn: the caller is in the middle of something that the turn may depend on.
    package func runInline(
        _ job: Unmanaged<Job>, interrupting context: UnsafeMutableRawPointer, complete: Completion
    ) {
        guard inlineJobs.begin(job) else { return }
        let outer = interrupted
        interrupted = Interrupted(context: context, complete: complete)
        runInlineJobs()
        interrupted = outer
    }

    /// A C function, so that a loop can keep it without counting references.
    package typealias Completion = @convention(c) (UnsafeMutableRawPointer) -> Void

    /// Before a turn inside an inline job. Inline jobs that come of it wait for `runInlineJobs`.
    func completeInterrupted() {
        guard let interrupted = interrupted.take() else { return }
        interrupted.complete(interrupted.context)
    }

    /// Returns whether there was one.
    @discardableResult
    func runInlineJobs() -> Bool {
        var hasRun = false
        while let job = inlineJobs.popFirst() {
            job._withUnsafeGuaranteedRef { $0.runAndRelease() }
            hasRun = true
        }
        return hasRun
    }

    /// Discards `job`, which was refused by a loop that has ended, likewise; not one inside the other, since a job that
    /// goes may take the next with it.
    package func discard(_ job: Unmanaged<Job>) {
        if discardedJobs.begin(job) { discardWaitingJobs() }
    }

    private func discardWaitingJobs() {
        while let job = discardedJobs.popFirst() { job._withUnsafeGuaranteedRef { $0.discardAndRelease() } }
    }

    /// Calls `body`, which releases something of a user's, and then discards the jobs that the `deinit`s there have handed to
    /// `discard`: so none of them is discarded inside another. Not inside another call, see `isDiscarding`.
    package func discarding(_ body: () -> Void) {
        discardedJobs.resume()
        body()
        discardWaitingJobs()
    }

    /// Whether something is being discarded.
    package var isDiscarding: Bool { discardedJobs.isRunning }

    /// Keeps a job that stands in no queue, with the caller's reference, for the layer above to use it again. The loop lets
    /// it go when it ends.
    package func keepRecycledWaiter(_ job: Unmanaged<Job>) {
        let superfluous = hasEnded ? job : recycledWaiter
        if !hasEnded { recycledWaiter = job }
        superfluous?.release()
    }

    /// The job that has been kept, if there is one, with its reference.
    package func takeSpareJob() -> Unmanaged<Job>? { recycledWaiter.take() }

    /// A handler on this loop begins to wait for a promise, or has come to its end.
    @inlinable @inline(__always)
    package func handlerDidAttach() { waitingHandlers &+= 1 }
    @inlinable @inline(__always)
    package func handlerDidDetach() { waitingHandlers &-= 1 }

    /// Queues a job and takes over the caller's reference to it.
    @inlinable @inline(__always)
    package func enqueueOwned(_ job: Unmanaged<Job>) { ready.append(job) }

    /// Queues what other threads have posted.
    @inlinable @inline(__always)
    package func takeMail() { if !mailbox.isEmpty { collectMail() } }

    @usableFromInline
    func collectMail() {
        if isParked { unpark() }
        mailbox.take(into: &ready)
    }
}
