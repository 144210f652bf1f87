/// The jobs that a loop runs or discards, and the limit per turn.
///
/// Invariant: used on the loop's thread only. A job is in at most one queue, which owns it. No job is called while a
/// queue changes. The ready queue comes first, since every turn reads it. A class, because jobs use the loop and
/// thereby this object; `@exclusivity(unchecked)` for the same reasons as in `EventLoop`.
@usableFromInline
package final class LoopJobs {
    /// In the order of queueing.
    @exclusivity(unchecked) @usableFromInline var ready = JobQueue()
    @exclusivity(unchecked) @usableFromInline var spare = SpareJobs()
    /// Jobs that run in the same turn when no job is ready; see `EventLoop.enqueueAtEndOfTurn`.
    @exclusivity(unchecked) private var endOfTurn = JobQueue()
    /// Batches of ready jobs for which they have waited.
    @exclusivity(unchecked) private var batchesBeforeEnd: UInt8 = 0
    /// True when the last batch had long jobs, so the clock is read more often.
    @exclusivity(unchecked) private var hasLongJobs = false
    @exclusivity(unchecked) private var inline = Trampoline()
    /// The operation that the running inline job has interrupted, if the operation must complete before a turn.
    @exclusivity(unchecked) private var interrupted: Interrupted?
    /// Jobs that never run, released one after the other.
    @exclusivity(unchecked) private var discarded = Trampoline()
    private let meter: LoopMeter
    private let clock: LoopClock

    init(_ meter: LoopMeter, _ clock: LoopClock) {
        self.meter = meter
        self.clock = clock
    }

    @inline(__always)
    var hasJobs: Bool { !ready.isEmpty || !endOfTurn.isEmpty }

    /// Counted one by one.
    var count: Int { ready.count + endOfTurn.count }

    /// `count`, up to about `most`.
    func count(atMost most: Int) -> Int {
        Job.count(from: ready.head, atMost: most) + Job.count(from: endOfTurn.head, atMost: most)
    }

    var countOfReported: Int { ready.countOfReported + endOfTurn.countOfReported }

    /// The last prepended job, which may have run; the next event waits for it. Compared, never dereferenced.
    @exclusivity(unchecked) private var urgent: UnsafeMutableRawPointer?
    var isUrgent: Bool { urgent != nil }

    func prepend(_ job: Unmanaged<Job>) {
        ready.prepend(job)
        urgent = job.toOpaque()
    }

    /// Called between two events.
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

    /// The most jobs before descriptors and timers, so an endless chain starves neither. A job takes about 100 ns, a
    /// batch 0.1 ms.
    private static var jobBudget: Int { 1024 }
    /// The longest batch in nanoseconds, for long jobs.
    private static var timeBudget: Int64 { 2_000_000 }
    /// The jobs before the first clock reading, and the most between two readings. A reading costs about as much as a
    /// job, and most turns have fewer than four jobs.
    private static var firstLook: Int { 4 }
    private static var longestStretch: Int { 64 }

    /// Runs ready jobs within a budget, then the end-of-turn jobs.
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
        // After a batch of long jobs, the time is measured from the first job on, and usually less and less often.
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

    /// The most batches of short jobs before the end-of-turn jobs: a few milliseconds. Fifty clients with 16 requests
    /// each cause about 10,000 jobs; their answers would otherwise be sent in ten parts.
    private static var mostBatches: UInt8 { 8 }

    /// Called when the turn's budget is spent. End-of-turn jobs wait, since ready jobs may add to their work, unless
    /// jobs are long or `mostBatches` is reached. Those that they enqueue stay for later. Returns the number of jobs
    /// run.
    @inline(never)
    private func runLateEndOfTurnJobs(isOverTime: Bool) -> Int {
        if !isOverTime && batchesBeforeEnd < Self.mostBatches {
            batchesBeforeEnd += 1
            return 0
        }
        batchesBeforeEnd = 0
        let count = endOfTurn.count
        for _ in 0..<count {
            // A nested turn may have run the other jobs.
            guard let job = endOfTurn.popFirst() else { break }
            meter.run(job)
        }
        return count
    }

    // MARK: Between timers

    /// The rest of a batch's budget, for jobs between a turn's due timers.
    struct BudgetBetweenTimers {
        fileprivate var left = LoopJobs.jobBudget
        fileprivate var nextLook = LoopJobs.jobBudget - LoopJobs.firstLook
        fileprivate var isOverTime = false
        fileprivate let deadline: Int64

        /// - Parameter moment: the time of the search for due timers, which saves a clock reading.
        @inline(__always)
        init(since moment: Int64) { deadline = moment.addingSaturating(LoopJobs.timeBudget) }
    }

    /// Runs the jobs that due timers made ready, except end-of-turn jobs.
    /// - Returns: false if the budget is spent and jobs are ready.
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

    // The context is on the stack of the `runInline` call, which sets the field and resets it before returning.
    private struct Interrupted {
        let context: UnsafeMutableRawPointer
        let complete: InlineCompletion
    }

    var isRunningInline: Bool { inline.isRunning }

    /// True when an inline job or the `deinit` of a discarded object is on the stack.
    @inline(__always)
    var isInterrupted: Bool { inline.isRunning || discarded.isRunning }

    /// Runs `job` at once or after the running inline job, and releases the caller's reference.
    package func runInline(_ job: Unmanaged<Job>) {
        if inline.begin(job) { runInlineJobs() }
    }

    /// Runs `job` like `runInline(_:)`. If the job runs at once and turns the loop, calls `complete` with `context`
    /// before that turn.
    package func runInline(
        _ job: Unmanaged<Job>, interrupting context: UnsafeMutableRawPointer, complete: InlineCompletion
    ) {
        // `nil` if no inline job is running: a turn inside one takes it first.
        guard inline.begin(job) else { return }
        interrupted = Interrupted(context: context, complete: complete)
        runInlineJobs()
        interrupted = nil
    }

    @discardableResult
    private func runInlineJobs() -> Bool {
        var hasRun = false
        while let job = inline.popFirst() {
            job._withUnsafeGuaranteedRef { $0.runAndRelease() }
            hasRun = true
        }
        return hasRun
    }

    /// Called when a turn begins inside an inline job. Runs the queued inline jobs now, instead of when that job returns.
    /// An interrupted caller's `complete` is called first; the jobs that it adds run last.
    @discardableResult
    func runInlineJobsEarly() -> Bool {
        if let interrupted = interrupted.take() { interrupted.complete(interrupted.context) }
        return runInlineJobs()
    }

    func resumeInlineJob() { inline.resume() }

    /// Runs jobs queued after an inline job or a discarded object's `deinit`, since they must not wait for its return.
    /// Called before ready jobs.
    /// - Returns: true if `resumeDiscarding` must follow.
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

    /// Discards `job`, at once or after the current discard. Discards are not nested, since a released job may release
    /// the next.
    package func discard(_ job: Unmanaged<Job>) {
        if discarded.begin(job) { discardWaitingJobs() }
    }

    /// Called when a turn begins, perhaps inside a discarded object's `deinit`, for which other discards must not wait.
    /// Returns true inside a `deinit`; `resumeDiscarding` must then follow the turn.
    func interruptDiscarding() -> Bool {
        defer { discardWaitingJobs() }
        return discarded.isRunning
    }

    func resumeDiscarding() { discarded.resume() }

    private func discardWaitingJobs() {
        while let job = discarded.popFirst() { job._withUnsafeGuaranteedRef { $0.discardAndRelease() } }
    }

    /// Calls `body`, which releases a user's object, then discards the jobs that its `deinit`s passed to `discard`, so
    /// no discard is nested. Must not itself be nested; see `isDiscarding`.
    package func discarding(_ body: () -> Void) {
        discarded.resume()
        body()
        discardWaitingJobs()
    }

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

/// Completes an operation that has called `LoopJobs.runInline`, before the loop turns. A C function, so keeping it
/// needs no reference counts.
package typealias InlineCompletion = @convention(c) (UnsafeMutableRawPointer) -> Void
