/// A loop as an executor for Swift Concurrency.
///
/// Swift's jobs are ordinary jobs on the loop. They run in order of arrival, and keep the loop alive only once they
/// have arrived; until then, take a `hold()`.
///
/// Jobs queued when the loop ends, or later, still run, since otherwise their tasks would never end. They run one at a
/// time, after the end is complete, on one thread for all ended loops. The first such job of each loop is reported.
///
/// A task that prefers the loop does not run actors without a custom executor here: see `DefaultActorJob`.
///
/// Two jobs on one loop never run at once, which isolates actors. But a job that turns the loop, for example in a
/// nested `run()`, lets other jobs run before it returns, including its own actor's jobs.
extension LoopRemote: SerialExecutor, TaskExecutor {
    /// Called by Swift, on any thread, for a task that prefers the loop.
    public func enqueue(_ job: consuming ExecutorJob) { loop.enqueue(UnownedJob(job), ofTask: .task(self)) }

    /// Called by Swift, for actors that live on the loop.
    public func asUnownedSerialExecutor() -> UnownedSerialExecutor { actors.asUnownedSerialExecutor() }

    // For actors whose executor is `UnownedSerialExecutor(ordinary: remote)`.

    /// Compares two remotes. Called by Swift.
    public func isSameExclusiveExecutionContext(other: LoopRemote) -> Bool { self == other }

    /// Traps unless this is the calling thread's current loop, so `assumeIsolated` works in the loop's handlers.
    public func checkIsolated() { actors.checkIsolated() }

    /// Checks like `checkIsolated()`, without a trap.
    public func isIsolatingCurrentContext() -> Bool? { loop.isCurrent }
}

/// The executor for actors' jobs, separate from the one for tasks that prefer the loop.
///
/// Swift compares a thread's executors, the actor's and the task's, with the job's, and enqueues the job again if they
/// differ. With a single object, a `Task.yield` was enqueued four times instead of twice. (The task executor must be
/// the object that users have, because Swift retains one object and releases the other.)
final class LoopActorExecutor: SerialExecutor {
    // Sound: other threads touch only the loop's mailbox and atomics.
    nonisolated(unsafe) private let loop: EventLoop

    init(_ loop: EventLoop) { self.loop = loop }

    func enqueue(_ job: consuming ExecutorJob) { loop.enqueue(UnownedJob(job), .actor(self)) }

    // An ended loop creates a new remote for each request, so executors are compared by loop.
    func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(complexEquality: self) }

    func isSameExclusiveExecutionContext(other: LoopActorExecutor) -> Bool { loop === other.loop }

    func isExecutor(of other: EventLoop) -> Bool { loop === other }

    func checkIsolated() {
        precondition(loop.isCurrent, "this is not the thread of the event loop that the actor lives on")
    }

    func isIsolatingCurrentContext() -> Bool? { loop.isCurrent }
}
