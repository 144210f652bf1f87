import CLinux
import Glibc
import Synchronization

/// As an executor of Swift Concurrency.
///
/// A job that comes from Swift is a job of the loop like others: in the order of coming, and counted as ready once it has
/// come. It does not keep the loop alive before that: take a `hold()`, or await in `Promise { … }`, which the loop counts.
///
/// Swift's jobs must run, or their tasks would never end. So those that come when the loop has ended, or that it leaves
/// behind when it ends, run when it has ended for good, on a thread which is there for the jobs of all ended loops, one after
/// the other; the first of a loop is reported. Isolation holds: two jobs of one loop never run at the same time. But a job that
/// turns the loop, by `hang` for instance, lets others run in its midst, also those of the same actor.
extension EventLoop.Remote: SerialExecutor, TaskExecutor {
    /// Called by Swift, for tasks that prefer the loop. Any thread.
    public func enqueue(_ job: consuming ExecutorJob) { SwiftJob(UnownedJob(job), .task(self), loop).enqueue() }

    /// Called by Swift, for actors.
    public func asUnownedSerialExecutor() -> UnownedSerialExecutor { actors.asUnownedSerialExecutor() }

    /// Whether both are of one loop.
    public func isSameExclusiveExecutionContext(other: EventLoop.Remote) -> Bool { self == other }

    /// Traps if this is not the loop's thread, with the loop as its current one. So `assumeIsolated` works in the handlers
    /// of that loop's promises.
    public func checkIsolated() { actors.checkIsolated() }

    /// The same as an answer.
    public func isIsolatingCurrentContext() -> Bool? { loop.isCurrent }
}

/// The loop for the jobs of actors, as opposed to those of tasks that prefer it. Swift compares what a thread runs for with
/// what a job asks for, actor's executor and task's, and enqueues the job anew if they differ: with one object for both a
/// `Task.yield` came here four times instead of twice. (That of tasks must be the one that users name: Swift retains one
/// and releases the other.)
final class LoopActorExecutor: SerialExecutor {
    // Sound as in `Remote`: of the loop only the mailbox and atomics are touched, unless this is its thread.
    nonisolated(unsafe) private let loop: EventLoop

    init(_ loop: EventLoop) { self.loop = loop }

    func enqueue(_ job: consuming ExecutorJob) { SwiftJob(UnownedJob(job), .actor(self), loop).enqueue() }

    // A loop that has ended makes a remote for each who asks.
    func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(complexEquality: self) }

    func isSameExclusiveExecutionContext(other: LoopActorExecutor) -> Bool { loop === other.loop }

    func isExecutor(of other: EventLoop) -> Bool { loop === other }

    func checkIsolated() {
        precondition(loop.isCurrent, "this is not the thread of the event loop that the actor lives on")
    }

    func isIsolatingCurrentContext() -> Bool? { loop.isCurrent }
}

/// A job of Swift's as one of the loop.
private final class SwiftJob: Job {
    enum Purpose {
        case actor(LoopActorExecutor)
        case task(EventLoop.Remote)
    }

    private let job: UnownedJob
    private let purpose: Purpose
    private let loop: EventLoop

    init(_ job: UnownedJob, _ purpose: Purpose, _ loop: EventLoop) {
        self.job = job
        self.purpose = purpose
        self.loop = loop
        super.init()
    }

    /// Any thread. On the loop's own it is ready at once: through the mailbox, a task that yields would cost a turn each time.
    func enqueue() {
        let node = Unmanaged<Job>.passRetained(self)
        if loop.isCurrent { return loop.enqueueOwned(node) }
        if !loop.post(node) { node._withUnsafeGuaranteedRef { $0.discardAndRelease() } }
    }

    override func run() { Self.run(job, purpose, loop.door) }

    private static func run(_ job: UnownedJob, _ purpose: Purpose, _ door: EventLoop.Remote?) {
        switch (purpose, door) {
        case (.actor(let actors), let door?):
            job.runSynchronously(
                isolatedTo: actors.asUnownedSerialExecutor(), taskExecutor: door.asUnownedTaskExecutor())
        case (.actor(let actors), nil): job.runSynchronously(on: actors.asUnownedSerialExecutor())
        case (.task(let tasks), _): job.runSynchronously(on: tasks.asUnownedTaskExecutor())
        }
    }

    // It runs, elsewhere.
    override var isReportedUndelivered: Bool { false }

    /// The loop has ended.
    override func discardAndRelease() {
        rescue()
        super.discardAndRelease()
    }

    private func rescue() {
        // In a forked child the task is the parent's.
        if loop.isForked { return }
        if !loop.hasReportedTask.exchange(true, ordering: .relaxed) { LoopEvent.send(.taskOnEndedLoop) }
        // Not while the loop's own thread ends it, which touches what the job may.
        loop.isOver.whenOpen { [job, purpose] in Self.runElsewhere(job, purpose) }
    }

    /// Not one inside the other, and not here: whoever enqueues may hold anything.
    private static func runElsewhere(_ job: UnownedJob, _ purpose: Purpose) {
        while true {
            do {
                return try afterlife.dispatch { run(job, purpose, nil) }
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
