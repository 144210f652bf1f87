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
