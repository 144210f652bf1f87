/// The jobs that a loop runs or discards on its thread, and the limit per turn.
///
/// Invariant: used on the loop's thread only. A job is in at most one of the queues, which owns it; no queue calls a
/// job while it is itself being changed. The ready queue comes first: every turn looks at it. A class, because jobs use
/// the loop, and so this object; `@exclusivity(unchecked)` as in `EventLoop`.
@usableFromInline
package final class LoopJobs {
    /// Jobs that turns run, in the order in which they were queued.
    @exclusivity(unchecked) @usableFromInline var ready = JobQueue()
    /// Jobs that have run, kept for reuse.
    @exclusivity(unchecked) @usableFromInline var spare = SpareJobs()
    /// Jobs that run in the same turn, when no job is ready any more; see `EventLoop.enqueueAtEndOfTurn`.
    @exclusivity(unchecked) private var endOfTurn = JobQueue()
    /// The number of batches of ready jobs that they have waited for.
    @exclusivity(unchecked) private var batchesBeforeEnd: UInt8 = 0
    /// Whether the jobs of the last batch were long, so that the clock is read more often.
    @exclusivity(unchecked) private var hasLongJobs = false
    /// Jobs that run at once, but one after the other.
    @exclusivity(unchecked) private var inline = Trampoline()
    /// The operation that the running inline job has interrupted, if it must be completed before a turn.
    @exclusivity(unchecked) private var interrupted: Interrupted?
    /// Jobs that never run, to be released one after the other.
    @exclusivity(unchecked) private var discarded = Trampoline()
    private let meter: LoopMeter
    private let clock: LoopClock

    init(_ meter: LoopMeter, _ clock: LoopClock) {
        self.meter = meter
        self.clock = clock
    }

    /// Whether a turn has a job to run.
    @inline(__always)
    var hasJobs: Bool { !ready.isEmpty || !endOfTurn.isEmpty }

    /// The number of jobs that turns run. Counts them one by one.
    var count: Int { ready.count + endOfTurn.count }

    /// As `count`, but at most about this number.
    func count(atMost most: Int) -> Int {
        Job.count(from: ready.head, atMost: most) + Job.count(from: endOfTurn.head, atMost: most)
    }

    /// As `JobQueue.countOfReported`, of both queues.
    var countOfReported: Int { ready.countOfReported + endOfTurn.countOfReported }

    /// The last job that was put before the others, which may have run: the next event waits for it. Compared, not followed.
    @exclusivity(unchecked) private var urgent: UnsafeMutableRawPointer?
    var isUrgent: Bool { urgent != nil }

    func prepend(_ job: Unmanaged<Job>) {
        ready.prepend(job)
        urgent = job.toOpaque()
    }

    /// Runs the urgent job, between two events, unless it has run.
    @inline(never)
    func runUrgent() {
        guard let urgent = urgent.take(), ready.head?.toOpaque() == urgent, let job = ready.popFirst() else { return }
        meter.counters.jobs += 1
        meter.run(job)
    }

    func appendAtEndOfTurn(_ job: Unmanaged<Job>) {
        if endOfTurn.isEmpty { batchesBeforeEnd = 0 }
        endOfTurn.append(job)
    }

    // MARK: In a turn

    /// The number of jobs that run before the loop looks at descriptors and timers again, so that a chain of jobs that
    /// feeds itself starves neither. A job is some 100 ns of work, so a batch takes 0.1 ms.
    private static var jobBudget: Int { 1024 }
    /// The budget of a batch in nanoseconds, for long jobs.
    private static var timeBudget: Int64 { 2_000_000 }
    /// The number of jobs before the first clock reading, and the most between two readings. Few turns have as many as
    /// four jobs, so most turns do not read the clock for them; a reading costs about as much as a job.
    private static var firstLook: Int { 4 }
    private static var longestStretch: Int { 64 }

    /// Runs ready jobs, at most a budget of them, and then those for the end of the turn.
    /// - Returns: whether there were any.
    @inline(__always)
    func run() -> Bool {
        guard hasJobs else { return false }
        runBatch()
        return true
    }

    @inline(never)
    private func runBatch() {
        var left = Self.jobBudget
        urgent = nil
        meter.beginTiming()
        var deadline = Int64.max
        var areLong = false
        // If the jobs of the last batch were long, the time is measured from the first job on; otherwise the clock is
        // read less and less often.
        var nextLook = left - Self.firstLook
        if hasLongJobs {
            deadline = clock.now.nanoseconds &+ Self.timeBudget
            nextLook = left - 1
        }
        while left > 0, let job = ready.popFirst() ?? endOfTurn.popFirst() {
            left -= 1
            meter.run(job)
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
        if !endOfTurn.isEmpty { left -= runLateEndOfTurnJobs(isOverTime: left > 0) }
        meter.counters.jobs += Self.jobBudget - left
    }

    /// The number of batches of short jobs that run before the jobs for the end of the turn: a few milliseconds
    /// together. Fifty clients with 16 requests each cause some 10,000 jobs, whose answers would otherwise be sent in
    /// ten parts.
    private static var mostBatches: UInt8 { 8 }

    /// Called when the turn's budget of jobs is used up and further jobs are ready. These may add work for the
    /// end-of-turn jobs, which therefore wait for them, unless jobs are long or `mostBatches` is reached. End-of-turn
    /// jobs that end-of-turn jobs enqueue are left for later.
    /// - Returns: the number of jobs that were run.
    @inline(never)
    private func runLateEndOfTurnJobs(isOverTime: Bool) -> Int {
        if !isOverTime && batchesBeforeEnd < Self.mostBatches {
            batchesBeforeEnd += 1
            return 0
        }
        batchesBeforeEnd = 0
        let count = endOfTurn.count
        for _ in 0..<count {
            // A nested turn may have run the rest.
            guard let job = endOfTurn.popFirst() else { break }
            meter.run(job)
        }
        return count
    }

    // MARK: Between timers

    /// The remaining budget for jobs that run between the due timers of a turn: initially a batch's.
    struct BudgetBetweenTimers {
        fileprivate var left = LoopJobs.jobBudget
        fileprivate var nextLook = LoopJobs.jobBudget - LoopJobs.firstLook
        fileprivate var isOverTime = false
        fileprivate let deadline: Int64

        /// - Parameter moment: when the turn found the timers due, which saves a clock reading.
        @inline(__always)
        init(since moment: Int64) { deadline = moment.addingSaturating(LoopJobs.timeBudget) }
    }

    /// Runs the jobs that due timers have made ready, except end-of-turn jobs.
    /// - Returns: false if the budget is spent and further jobs are ready.
    @inline(never)
    func runBetweenTimers(_ budget: inout BudgetBetweenTimers) -> Bool {
        let before = budget.left
        while budget.left > 0, !budget.isOverTime, let job = ready.popFirst() {
            budget.left -= 1
            meter.run(job)
            guard budget.left <= budget.nextLook else { continue }
            budget.isOverTime = clock.now.nanoseconds > budget.deadline
            budget.nextLook = budget.left - min(Self.jobBudget - budget.left, Self.longestStretch)
        }
        meter.counters.jobs += before - budget.left
        return ready.isEmpty
    }

    // MARK: Inline jobs

    // The context is on the stack of the call of `runInline` that set the field. The call resets the field before it
    // returns.
    private struct Interrupted {
        let context: UnsafeMutableRawPointer
        let complete: InlineCompletion
    }

    var isRunningInline: Bool { inline.isRunning }

    /// Whether an inline job, or the `deinit` of a discarded object, is on the stack.
    @inline(__always)
    var isInterrupted: Bool { inline.isRunning || discarded.isRunning }

    /// Runs `job` and releases the caller's reference: at once, or after the inline job that is running.
    package func runInline(_ job: Unmanaged<Job>) {
        if inline.begin(job) { runInlineJobs() }
    }

    /// As `runInline(_:)`. If the job runs at once and turns the loop, `complete` is called with `context` before that
    /// turn.
    package func runInline(
        _ job: Unmanaged<Job>, interrupting context: UnsafeMutableRawPointer, complete: InlineCompletion
    ) {
        // It is `nil` where no inline job is running: a turn inside one takes it first.
        guard inline.begin(job) else { return }
        interrupted = Interrupted(context: context, complete: complete)
        runInlineJobs()
        interrupted = nil
    }

    /// - Returns: whether there was an inline job.
    @discardableResult
    private func runInlineJobs() -> Bool {
        var hasRun = false
        while let job = inline.popFirst() {
            job._withUnsafeGuaranteedRef { $0.runAndRelease() }
            hasRun = true
        }
        return hasRun
    }

    /// A turn begins inside an inline job: the jobs queued after it must not wait for its return. Inline jobs that the
    /// completion makes go after the others.
    /// - Returns: whether there was an inline job.
    @discardableResult
    func runInlineJobsEarly() -> Bool {
        if let interrupted = interrupted.take() { interrupted.complete(interrupted.context) }
        return runInlineJobs()
    }

    /// The turn inside the inline job is over.
    func resumeInlineJob() { inline.resume() }

    /// Before ready jobs run: jobs queued after an inline job, or after the `deinit` of a discarded object, must not
    /// wait for its return.
    /// - Returns: whether `resumeDiscarding` must be called afterwards.
    @inline(__always)
    func runInterruptedJobs() -> Bool { isInterrupted ? runInterruptedJobsNow() : false }

    @inline(never)
    private func runInterruptedJobsNow() -> Bool {
        if inline.isRunning {
            runInlineJobsEarly()
            resumeInlineJob()
        }
        return interruptDiscarding()
    }

    // MARK: Jobs that never run

    package var isDiscarding: Bool { discarded.isRunning }

    /// Discards `job` at once, or after the job that is being discarded. Discards are not nested, since a released job
    /// may release the next one.
    package func discard(_ job: Unmanaged<Job>) {
        if discarded.begin(job) { discardWaitingJobs() }
    }

    /// A turn begins, possibly inside the `deinit` of a discarded object. It may be long, so jobs that are discarded
    /// before it and in it do not wait for the `deinit` to return.
    /// - Returns: whether it is inside one: `resumeDiscarding` must then be called after the turn.
    func interruptDiscarding() -> Bool {
        defer { discardWaitingJobs() }
        return discarded.isRunning
    }

    func resumeDiscarding() { discarded.resume() }

    private func discardWaitingJobs() {
        while let job = discarded.popFirst() { job._withUnsafeGuaranteedRef { $0.discardAndRelease() } }
    }

    /// Calls `body`, which releases an object of the user's, and then discards the jobs that its `deinit`s have passed
    /// to `discard`. No job is therefore discarded inside another. Must not be nested; see `isDiscarding`.
    package func discarding(_ body: () -> Void) {
        discarded.resume()
        body()
        discardWaitingJobs()
    }

    /// Discards the queued jobs.
    /// - Returns: the number to report as undelivered.
    func discardAll() -> Int {
        var undelivered = 0
        while let job = ready.popFirst() ?? endOfTurn.popFirst() {
            job._withUnsafeGuaranteedRef {
                if $0.isReportedUndelivered { undelivered += 1 }
                $0.discardAndRelease()
            }
        }
        return undelivered
    }
}

/// The completion of an operation of a caller of `LoopJobs.runInline`, before the loop turns. A C function, so that a
/// loop can keep it without counting references.
package typealias InlineCompletion = @convention(c) (UnsafeMutableRawPointer) -> Void
