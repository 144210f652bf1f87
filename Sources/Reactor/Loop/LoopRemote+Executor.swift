/// A loop as an executor of Swift Concurrency.
///
/// Swift's jobs are treated like other jobs of the loop: they run in the order of arrival, and count as ready once they
/// have arrived. Before that they do not keep the loop alive: take a `hold()`.
///
/// Swift's jobs must run, or their tasks would never end. A job may arrive after the loop has ended, or still be queued
/// when the loop ends. Such jobs run after the end is complete, one after another, on a thread that serves all ended
/// loops; the first job of each loop is reported.
///
/// A task that prefers the loop does not run an actor without a custom executor here: see `DefaultActorJob`.
///
/// Isolation holds: two jobs of one loop never run at the same time. But a job that turns the loop, in a nested `run()`
/// for instance, lets other jobs run before it returns, including jobs of the same actor.
extension LoopRemote: SerialExecutor, TaskExecutor {
    /// Queues a job of a task that prefers the loop. Called by Swift, on any thread.
    public func enqueue(_ job: consuming ExecutorJob) { loop.enqueue(UnownedJob(job), ofTask: .task(self)) }

    /// Called by Swift, for actors that live on the loop.
    public func asUnownedSerialExecutor() -> UnownedSerialExecutor { actors.asUnownedSerialExecutor() }

    // For actors whose executor is `UnownedSerialExecutor(ordinary: remote)`.

    /// Compares two remotes. Called by Swift.
    public func isSameExclusiveExecutionContext(other: LoopRemote) -> Bool { self == other }

    /// Traps unless the calling thread is the loop's and has the loop as its current one. So `assumeIsolated` works in
    /// the loop's handlers.
    public func checkIsolated() { actors.checkIsolated() }

    /// As `checkIsolated()`, without a trap.
    public func isIsolatingCurrentContext() -> Bool? { loop.isCurrent }
}

/// The executor for the jobs of actors, as opposed to jobs of tasks that prefer the loop.
///
/// Swift compares the executors that a thread runs for, the actor's and the task's, with those that a job asks for, and
/// enqueues the job again if they differ. With one object for both, a `Task.yield` was enqueued here four times instead
/// of twice. (The task executor must be the object that users refer to: Swift retains one object and releases the
/// other.)
final class LoopActorExecutor: SerialExecutor {
    // Sound as in `LoopRemote`: other threads touch only the loop's mailbox and its atomics.
    nonisolated(unsafe) private let loop: EventLoop

    init(_ loop: EventLoop) { self.loop = loop }

    func enqueue(_ job: consuming ExecutorJob) { loop.enqueue(UnownedJob(job), .actor(self)) }

    // A loop that has ended creates a new remote for each request, so executors are compared by their loop.
    func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(complexEquality: self) }

    func isSameExclusiveExecutionContext(other: LoopActorExecutor) -> Bool { loop === other.loop }

    func isExecutor(of other: EventLoop) -> Bool { loop === other }

    func checkIsolated() {
        precondition(loop.isCurrent, "this is not the thread of the event loop that the actor lives on")
    }

    func isIsolatingCurrentContext() -> Bool? { loop.isCurrent }
}
