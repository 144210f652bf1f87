/// An executor for tasks whose closures use the loop thread's values that are not `Sendable`.
///
/// Works like the loop's remote while the loop lives. A `withLoop` loop ends before its thread, so later jobs run on
/// the surrounding loop. If the loop ended with its thread, they run where the jobs of all ended loops do; see
/// `SwiftJob`.
package final class ThreadBoundExecutor: TaskExecutor {
    /// Innermost first.
    private let loops: [LoopRemote]

    /// Called on the loop's thread.
    package init(_ loop: EventLoop) { loops = ThreadLoop.loops(from: loop) }

    /// Called by Swift, on any thread.
    package func enqueue(_ job: consuming ExecutorJob) {
        loops[0].loop.enqueue(UnownedJob(job), ofTask: .boundTask(self))
    }

    /// Returns the loop that runs the jobs of `loop` after its end. That loop may have ended too. Any thread.
    func loop(around loop: EventLoop) -> EventLoop? {
        guard let index = loops.firstIndex(where: { $0.loop === loop }), index + 1 < loops.count else { return nil }
        return loops[index + 1].loop
    }
}

/// A value that a task on the loop captures although it is not `Sendable`. Each value has its own box, because Swift
/// 6.3 over-releases the other members of a tuple that contains a function.
// @unchecked: made on the loop's thread for one task, whose executor is the loop or bound to that thread. So no other
// thread uses the value or its contents.
package struct OnThread<Value>: @unchecked Sendable {
    package let value: Value

    package init(_ value: Value) { self.value = value }
}
