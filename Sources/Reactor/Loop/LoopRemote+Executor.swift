/// A loop as an executor of Swift Concurrency.
///
/// Swift's jobs are ordinary jobs of the loop. They run in order of arrival, and keep the loop alive only once they
/// have arrived: take a `hold()` before.
///
/// Jobs queued at the loop's end, or later, run after the end is complete, one at a time, on a thread for all ended
/// loops, since their tasks would otherwise never end. The first job of each loop is reported.
///
/// A task that prefers the loop does not run actors without a custom executor here: see `DefaultActorJob`.
///
/// Two jobs of one loop never run at once, which isolates actors. But a job that turns the loop, for instance in a
/// nested `run()`, lets other jobs run before it returns, including jobs of its own actor.
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

    /// `checkIsolated()` without a trap.
    public func isIsolatingCurrentContext() -> Bool? { loop.isCurrent }
}

/// The executor for jobs of actors, distinct from jobs of tasks that prefer the loop.
///
/// Swift compares a thread's executors, of actor and task, with the job's, and enqueues the job again if they differ.
/// With a single object, a `Task.yield` was enqueued four times instead of twice. (The task executor must be the object
/// of the users, because Swift retains one object and releases the other.)
final class LoopActorExecutor: SerialExecutor {
    // Sound as in `LoopRemote`: other threads touch only the loop's mailbox and atomics.
    nonisolated(unsafe) private let loop: EventLoop

    init(_ loop: EventLoop) { self.loop = loop }

    func enqueue(_ job: consuming ExecutorJob) { loop.enqueue(UnownedJob(job), .actor(self)) }

    // An ended loop creates a remote per request, so executors are compared by loop.
    func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(complexEquality: self) }

    func isSameExclusiveExecutionContext(other: LoopActorExecutor) -> Bool { loop === other.loop }

    func isExecutor(of other: EventLoop) -> Bool { loop === other }

    func checkIsolated() {
        precondition(loop.isCurrent, "this is not the thread of the event loop that the actor lives on")
    }

    func isIsolatingCurrentContext() -> Bool? { loop.isCurrent }
}
