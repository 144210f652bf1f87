/// An executor for tasks whose closures use what belongs to the loop's thread and is not `Sendable`.
///
/// While the loop lives, it differs in nothing from the loop's remote. A loop of `withLoop` ends before its thread does:
/// jobs that arrive afterwards run on the loop around it, when that is driven. Jobs of a loop that has ended with its
/// thread run where all jobs of ended loops do; see `SwiftJob`.
package final class ThreadBoundExecutor: TaskExecutor {
    /// The loop, and those around it on its thread, from the inside out.
    private let loops: [LoopRemote]

    /// Called on the loop's thread.
    package init(_ loop: EventLoop) { loops = ThreadLoop.loops(from: loop) }

    /// Called by Swift, on any thread.
    package func enqueue(_ job: consuming ExecutorJob) {
        loops[0].loop.enqueue(UnownedJob(job), ofTask: .boundTask(self))
    }

    /// Any thread: where the jobs of `loop` continue when it has ended. It may have ended too.
    func loop(around loop: EventLoop) -> EventLoop? {
        guard let index = loops.firstIndex(where: { $0.loop === loop }), index + 1 < loops.count else { return nil }
        return loops[index + 1].loop
    }
}
