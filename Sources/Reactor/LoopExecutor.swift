import CLinux
import Glibc
import Synchronization

extension EventLoop.Remote {
    /// An executor of Swift Concurrency whose jobs run on this loop: an actor may live here, next to the promises of this
    /// thread, and a task may prefer it.
    ///
    /// ```swift
    /// actor Ledger {
    ///     private let executor: LoopExecutor
    ///     nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
    ///     init(on loop: EventLoop.Remote) { executor = loop.executor }
    /// }
    /// ```
    ///
    /// Whoever refers to it unowned, as an actor does, must keep it. Executors of one loop are one context.
    public var executor: LoopExecutor { LoopExecutor(self) }
}

/// See `EventLoop.Remote.executor`.
///
/// What comes from Swift is a job of the loop like others: in the order of coming, and counted as ready once it has come. It
/// does not keep the loop alive before that: take a `hold()`, or await in `Promise { … }`, which the loop counts.
///
/// Swift's jobs must run, or their tasks would never end. So those that come when the loop has ended, or that it leaves
/// behind when it ends, run on a thread which is there for the jobs of all ended loops, one after the other; the
/// first of an executor is reported. Isolation holds: two jobs of one loop never run at the same time.
public final class LoopExecutor: SerialExecutor, TaskExecutor {
    private let remote: EventLoop.Remote
    private let hasReported = Atomic(false)

    fileprivate init(_ remote: EventLoop.Remote) { self.remote = remote }

    /// Called by Swift. Any thread.
    public func enqueue(_ job: consuming ExecutorJob) {
        let node = Unmanaged<Job>.passRetained(SwiftJob(UnownedJob(job), self))
        guard !remote.loop.post(node) else { return }
        node._withUnsafeGuaranteedRef { $0.discardAndRelease() }
    }

    /// Called by Swift. By complex equality: see `isSameExclusiveExecutionContext`.
    public func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(complexEquality: self) }

    /// Whether both are of one loop.
    public func isSameExclusiveExecutionContext(other: LoopExecutor) -> Bool { remote.loop === other.remote.loop }

    /// Traps if this is not the loop's thread, with the loop as its current one. So `assumeIsolated` works in the handlers
    /// of that loop's promises.
    public func checkIsolated() {
        precondition(isCurrent, "this is not the thread of the event loop that the actor lives on")
    }

    /// The same as an answer.
    public func isIsolatingCurrentContext() -> Bool? { isCurrent }

    private var isCurrent: Bool {
        clinux_get_current_loop() == Unmanaged.passUnretained(remote.loop).toOpaque() && !remote.loop.hasEnded
    }

    fileprivate func run(_ job: UnownedJob) {
        job.runSynchronously(isolatedTo: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
    }

    /// The loop has ended.
    fileprivate func rescue(_ job: UnownedJob) {
        // In a forked child the task is the parent's.
        if remote.loop.isForked { return }
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
    private let executor: LoopExecutor

    init(_ job: UnownedJob, _ executor: LoopExecutor) {
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
