import CLinux
import Glibc
import Synchronization

/// A loop as an executor of Swift Concurrency.
///
/// A job of Swift's is treated like any other job of the loop: it runs in the order of arrival, and counts as ready
/// once it has arrived. It does not keep the loop alive before that: take a `hold()`, or await in `Promise { … }`,
/// which the loop counts.
///
/// Swift's jobs must run, or their tasks would never end. A job may arrive after the loop has ended, or still be queued
/// when the loop ends. Such jobs run after the end is complete, one after another, on a thread that serves all ended
/// loops; the first job of each loop is reported.
///
/// Isolation holds: two jobs of one loop never run at the same time. But a job that turns the loop, by `hang` for
/// instance, lets other jobs run before it returns, including jobs of the same actor.
extension EventLoop.Remote: SerialExecutor, TaskExecutor {
    /// Queues a job of a task that prefers the loop. Called by Swift, on any thread.
    public func enqueue(_ job: consuming ExecutorJob) { SwiftJob(UnownedJob(job), .task(self), loop).enqueue() }

    /// The executor for actors that live on the loop. Called by Swift.
    public func asUnownedSerialExecutor() -> UnownedSerialExecutor { actors.asUnownedSerialExecutor() }

    /// Whether both are remotes of one loop.
    public func isSameExclusiveExecutionContext(other: EventLoop.Remote) -> Bool { self == other }

    /// Traps unless the calling thread is the loop's and has the loop as its current one. `assumeIsolated` therefore
    /// works in the handlers of that loop's promises.
    public func checkIsolated() { actors.checkIsolated() }

    /// As `checkIsolated()`, but returns the result instead of trapping.
    public func isIsolatingCurrentContext() -> Bool? { loop.isCurrent }
}

/// The executor for the jobs of actors, as opposed to jobs of tasks that prefer the loop.
///
/// Swift compares the executors that a thread runs for, the actor's and the task's, with those that a job asks for, and
/// enqueues the job again if they differ. With one object for both, a `Task.yield` was enqueued here four times instead
/// of twice. (The task executor must be the object that users refer to: Swift retains one object and releases the
/// other.)
final class LoopActorExecutor: SerialExecutor {
    // Sound as in `Remote`: other threads touch only the loop's mailbox and its atomics.
    nonisolated(unsafe) private let loop: EventLoop

    init(_ loop: EventLoop) { self.loop = loop }

    func enqueue(_ job: consuming ExecutorJob) { SwiftJob(UnownedJob(job), .actor(self), loop).enqueue() }

    // A loop that has ended creates a new remote for each request, so executors are compared by their loop.
    func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(complexEquality: self) }

    func isSameExclusiveExecutionContext(other: LoopActorExecutor) -> Bool { loop === other.loop }

    func isExecutor(of other: EventLoop) -> Bool { loop === other }

    func checkIsolated() {
        precondition(loop.isCurrent, "this is not the thread of the event loop that the actor lives on")
    }

    func isIsolatingCurrentContext() -> Bool? { loop.isCurrent }
}

/// A job of Swift's as a job of the loop.
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

    /// Any thread. On the loop's own thread the job is ready at once: through the mailbox, a task that yields would
    /// cost a turn each time.
    func enqueue() {
        let node = Unmanaged<Job>.passRetained(self)
        if loop.isCurrent { return loop.enqueueOwned(node) }
        if !loop.post(node) { node._withUnsafeGuaranteedRef { $0.discardAndRelease() } }
    }

    override func run() { Self.run(job, purpose, loop.lifecycle.remote) }

    private static func run(_ job: UnownedJob, _ purpose: Purpose, _ door: EventLoop.Remote?) {
        switch (purpose, door) {
        case (.actor(let actors), let door?):
            job.runSynchronously(
                isolatedTo: actors.asUnownedSerialExecutor(), taskExecutor: door.asUnownedTaskExecutor())
        case (.actor(let actors), nil): job.runSynchronously(on: actors.asUnownedSerialExecutor())
        case (.task(let tasks), _): job.runSynchronously(on: tasks.asUnownedTaskExecutor())
        }
    }

    // The job still runs, on another thread.
    override var isReportedUndelivered: Bool { false }

    /// The loop has ended, so the job runs elsewhere.
    override func discardAndRelease() {
        rescue()
        super.discardAndRelease()
    }

    private func rescue() {
        // In a forked child the task belongs to the parent.
        if loop.isForked { return }
        if !loop.shared.lifecycle.hasReportedTask.exchange(true, ordering: .relaxed) {
            LoopEvent.send(.taskOnEndedLoop)
        }
        // Not while the loop's own thread is ending it: that thread may use the same state as the job.
        loop.shared.lifecycle.isOver.whenOpen { [job, purpose] in Self.runElsewhere(job, purpose) }
    }

    /// Jobs are neither nested nor run on the enqueueing thread, which may hold any lock.
    private static func runElsewhere(_ job: UnownedJob, _ purpose: Purpose) {
        while true {
            do {
                return try afterlife.dispatch { run(job, purpose, nil) }
            } catch DispatchError.poolIsForked {
                // The thread belongs to the parent, and there is nothing to wait for.
                return
            } catch { sched_yield() }
        }
    }

    // One thread, so that isolation holds. The arguments are valid, and the limit is out of reach. Only starting the
    // thread can fail, which is then tried again.
    private static let afterlife = try! ThreadPool(name: "ended-loops", threads: 1, queueLimit: .max)
}
