import CLinux

/// An executor for tasks whose closures use what belongs to the loop's thread and is not `Sendable`.
///
/// While the loop lives, it differs in nothing from the loop's remote. A loop of `withLoop` ends before its thread does:
/// jobs that arrive afterwards run on the loop around it, when that is driven. Jobs of a loop that has ended with its
/// thread run where all jobs of ended loops do; see `SwiftJob`.
package final class ThreadBoundExecutor: TaskExecutor {
    /// The loop, and those around it on its thread, from the inside out.
    private let loops: [EventLoop.Remote]

    /// Called on the loop's thread.
    package init(_ loop: EventLoop) { loops = loop.loopsOfThread() }

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

extension EventLoop {
    /// What a loop lives in, and ends with.
    enum Scope {
        case thread
        /// The function that is passed to `withLoop`. The loop around it, if the thread has one, outlives it.
        case function(within: UnsafeMutableRawPointer?)
    }

    /// The loop around this one on its thread, if there is one.
    var surroundingLoop: UnsafeMutableRawPointer? {
        if case .function(let outer) = scope { outer } else { nil }
    }

    /// This loop and those around it. If the thread has no loop of its own yet, it is made here, since the thread
    /// continues.
    fileprivate func loopsOfThread() -> [Remote] {
        guard case .function(let outer) = scope else { return [remote] }
        let around = outer ?? makeSurroundingLoop()
        return [remote] + Unmanaged<EventLoop>.fromOpaque(around)._withUnsafeGuaranteedRef { $0.loopsOfThread() }
    }

    private func makeSurroundingLoop() -> UnsafeMutableRawPointer {
        let current = clinux_get_current_loop()
        clinux_set_current_loop(nil)
        let made = EventLoop.addressOfThisThread
        clinux_set_current_loop(current)
        EventLoop.noteHandlersIfNeeded()
        scope = .function(within: made)
        return made
    }
}
