/// An executor for tasks whose closures use values of the loop's thread that are not `Sendable`.
///
/// Works like the loop's remote while the loop lives. A loop of `withLoop` ends before its thread, so later jobs run on
/// the surrounding loop. After an end with the thread, they run where all jobs of ended loops do; see `SwiftJob`.
package final class ThreadBoundExecutor: TaskExecutor {
    /// The loop and its surrounding loops on this thread, innermost first.
    private let loops: [LoopRemote]

    /// Called on the loop's thread.
    package init(_ loop: EventLoop) { loops = ThreadLoop.loops(from: loop) }

    /// Called by Swift, on any thread.
    package func enqueue(_ job: consuming ExecutorJob) {
        loops[0].loop.enqueue(UnownedJob(job), ofTask: .boundTask(self))
    }

    /// Any thread. The loop that runs the jobs of `loop` after its end. It may have ended too.
    func loop(around loop: EventLoop) -> EventLoop? {
        guard let index = loops.firstIndex(where: { $0.loop === loop }), index + 1 < loops.count else { return nil }
        return loops[index + 1].loop
    }
}

/// A value that a task of the loop captures although it is not `Sendable`. One box per value: Swift 6.3 over-releases
/// the other members of a tuple that contains a function.
// @unchecked: made on the loop's thread for one task, whose executor is the loop or bound to that thread. So no other
// thread uses the value or its contents.
package struct OnThread<Value>: @unchecked Sendable {
    package let value: Value

    package init(_ value: Value) { self.value = value }
}
