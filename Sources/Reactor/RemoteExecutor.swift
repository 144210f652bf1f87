import CLinux
import Glibc
import Synchronization

/// A job that comes from Swift is a job of the loop like others: in the order of coming, and counted as ready once it has
/// come. It does not keep the loop alive before that: take a `hold()`, or await in `Promise { … }`, which the loop counts.
///
/// Swift's jobs must run, or their tasks would never end. So those that come when the loop has ended, or that it leaves
/// behind when it ends, run on a thread which is there for the jobs of all ended loops, one after the other; the
/// first of a loop is reported. Isolation holds: two jobs of one loop never run at the same time.
extension EventLoop.Remote: SerialExecutor, TaskExecutor {
    /// Called by Swift. Any thread.
    public func enqueue(_ job: consuming ExecutorJob) {
        let node = Unmanaged<Job>.passRetained(SwiftJob(UnownedJob(job), self))
        guard !loop.post(node) else { return }
        node._withUnsafeGuaranteedRef { $0.discardAndRelease() }
    }

    /// Called by Swift. By complex equality: see `isSameExclusiveExecutionContext`.
    public func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(complexEquality: self) }

    /// Whether both are of one loop.
    public func isSameExclusiveExecutionContext(other: EventLoop.Remote) -> Bool { self == other }

    /// Traps if this is not the loop's thread, with the loop as its current one. So `assumeIsolated` works in the handlers
    /// of that loop's promises.
    public func checkIsolated() {
        precondition(
            isIsolatingCurrentContext() == true, "this is not the thread of the event loop that the actor lives on")
    }

    /// The same as an answer.
    public func isIsolatingCurrentContext() -> Bool? { isCurrent && !loop.hasEnded }

    fileprivate func run(_ job: UnownedJob) {
        job.runSynchronously(isolatedTo: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
    }

    /// The loop has ended.
    fileprivate func rescue(_ job: UnownedJob) {
        // In a forked child the task is the parent's.
        if loop.isForked { return }
        if !hasReported.exchange(true, ordering: .relaxed) { LoopReport.send(.taskOfEndedLoop) }
        // Not one inside the other, and not here: whoever enqueues may hold anything.
        while true {
            do {
                return try Self.afterlife.dispatch { self.run(job) }
            } catch DispatchError.poolIsForked {
                // The thread is the parent's; there is none to wait for.
                return
            } catch { sched_yield() }
        }
    }

    // One thread, so that isolation holds. The count is fit, and the limit nothing that would be reached: all that can
    // fail is starting the thread, and then one is waited for.
    private static let afterlife = try! ThreadPool(name: "ended-loops", threads: 1, queueLimit: .max)
}

/// A job of Swift's as one of the loop.
private final class SwiftJob: Job {
    private let job: UnownedJob
    private let executor: EventLoop.Remote

    init(_ job: UnownedJob, _ executor: EventLoop.Remote) {
        self.job = job
        self.executor = executor
        super.init()
    }

    override func run() { executor.run(job) }

    // It runs, elsewhere.
    override var isReportedUndelivered: Bool { false }

    override func discardAndRelease() {
        executor.rescue(job)
        super.discardAndRelease()
    }
}
