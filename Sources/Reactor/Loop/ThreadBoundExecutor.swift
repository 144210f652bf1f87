/// An executor for tasks whose closures use what belongs to the loop's thread and is not `Sendable`.
///
/// While the loop lives, it differs in nothing from the loop's remote. Jobs that arrive after the loop has ended run on
/// the loop's thread too, as long as that thread continues: on the loop around the one of `withLoop`, when that is
/// driven. Jobs of a loop that has ended with its thread run where all jobs of ended loops do; see `SwiftJob`.
package final class ThreadBoundExecutor: TaskExecutor {
    // Sound as in `Remote`: other threads touch only the loop's mailbox and its atomics.
    nonisolated(unsafe) private let loop: EventLoop

    /// Called on the loop's thread.
    package init(_ loop: EventLoop) {
        self.loop = loop
        loop.ending.needsHeir = true
    }

    /// Called by Swift, on any thread.
    package func enqueue(_ job: consuming ExecutorJob) { loop.enqueue(UnownedJob(job), ofTask: .boundTask(self)) }
}
