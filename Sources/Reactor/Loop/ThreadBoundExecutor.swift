/// An executor for tasks whose closures use values that belong to the loop's thread and are not `Sendable`.
///
/// While the loop lives, it works like the loop's remote. A loop of `withLoop` ends before its thread does: jobs that
/// arrive afterwards run on the surrounding loop, when that is driven. Jobs of a loop that has ended with its thread
/// run where all jobs of ended loops do; see `SwiftJob`.
package final class ThreadBoundExecutor: TaskExecutor {
    /// The loop and its surrounding loops on the same thread, from the inside out.
    private let loops: [LoopRemote]

    /// Called on the loop's thread.
    package init(_ loop: EventLoop) { loops = ThreadLoop.loops(from: loop) }

    /// Called by Swift, on any thread.
    package func enqueue(_ job: consuming ExecutorJob) {
        loops[0].loop.enqueue(UnownedJob(job), ofTask: .boundTask(self))
    }

    /// Any thread: the loop on which jobs of `loop` continue after its end. It may have ended too.
    func loop(around loop: EventLoop) -> EventLoop? {
        guard let index = loops.firstIndex(where: { $0.loop === loop }), index + 1 < loops.count else { return nil }
        return loops[index + 1].loop
    }
}

/// A value that a task of the loop takes along although it is not `Sendable`. Each value has a box of its own: of a tuple with a
/// function in it Swift 6.3 releases the other members once too often.
// @unchecked: it is made on the loop's thread, and for one task, whose executor is the loop or is bound to that thread. So the
// value and what it refers to are used on no other thread.
package struct OnThread<Value>: @unchecked Sendable {
    package let value: Value

    package init(_ value: Value) { self.value = value }
}
