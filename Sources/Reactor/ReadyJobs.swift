// What a loop does with the jobs that are ready.

extension EventLoop {
    /// Runs `body` on this loop after all jobs that are ready already: in this turn if one is under way, otherwise in
    /// the next.
    public func enqueue(_ body: @escaping () -> Void, file: StaticString = #fileID, line: UInt = #line) {
        enqueue(job(body, file, line))
    }

    /// The same for a job object. It must not stand in a queue already.
    package func enqueue(_ job: Job) {
        assertOwner()
        ready.append(.passRetained(job))
    }

    /// Queues `job` behind what all events of this turn make ready; outside of their delivery as `enqueue`. Among the jobs of
    /// each event it would come after that event alone.
    package func enqueueAfterEvents(_ job: Job) {
        assertOwner()
        if isDeliveringEvents { heldJobs.append(.passRetained(job)) } else { ready.append(.passRetained(job)) }
    }

    func admitHeldJobs() {
        while let job = heldJobs.popFirst() { ready.append(job) }
    }

    /// Runs ready jobs, at most a budget of them. True if there was one.
    func drain() -> Bool {
        guard !ready.isEmpty else { return false }
        var budget = JobBudget()
        drain(&budget)
        return true
    }

    /// Runs ready jobs, at most `limit` of them and what is left of `budget`.
    func drain(_ budget: inout JobBudget, atMost limit: Int = .max) {
        let before = budget.jobs
        if isTiming { beginTiming() }
        while !budget.isSpent, budget.jobs - before < limit, let job = ready.popFirst() {
            budget.jobs += 1
            if isTiming { runTimed(job) } else { job._withUnsafeGuaranteedRef { $0.runAndRelease() } }
            if budget.jobs & 31 == 0 { budget.look(at: clock) }
        }
        counters.jobs += budget.jobs - before
    }

    /// The first part of a turn alone: ready jobs, within the budget of a turn.
    package func runReadyJobs() {
        assertOwner()
        let isInsideInlineJob = inlineJobs.isRunning
        if isInsideInlineJob {
            runInlineJobs()
            inlineJobs.resume()
        }
        admitHeldJobs()
        takeMail()
        _ = drain()
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

    /// Answers whether there was one.
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
        guard discardedJobs.begin(job) else { return }
        while let job = discardedJobs.popFirst() { job._withUnsafeGuaranteedRef { $0.discardAndRelease() } }
    }

    /// A handler on this loop begins to wait for a promise, or has come to its end.
    @inlinable @inline(__always)
    package func handlerWaits() { waitingHandlers &+= 1 }
    @inlinable @inline(__always)
    package func handlerWaitsNoMore() { waitingHandlers &-= 1 }

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

/// How many jobs run before descriptors and timers are looked at again, so that a chain of jobs that feeds itself starves
/// neither: 1024, each some 100 ns of work, which makes 0.1 ms; or, if they are long, what 2 ms have room for, at which
/// is looked every 32 jobs.
struct JobBudget {
    var jobs = 0
    private(set) var isSpent = false
    private var deadline = Int64.max

    mutating func look(at clock: LoopClock) {
        let now = clock.now.nanoseconds
        if deadline == .max { deadline = now &+ 2_000_000 }
        isSpent = jobs >= 1024 || now > deadline
    }
}
