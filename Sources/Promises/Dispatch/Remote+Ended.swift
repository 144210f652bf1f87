import Reactor
import Synchronization

extension EventLoop.Remote {
    /// Is fulfilled when the loop has ended, with all that it held: to wait without holding a thread. Any thread.
    ///
    /// ```swift
    /// worker.stop()
    /// hang(worker.ended)
    /// ```
    ///
    /// It does not keep this thread's loop alive: `hang` on it, or take a `hold()`. Ask once, since each answer is kept until the
    /// loop has ended.
    public var ended: Guarantee<Void> {
        let home = EventLoop.ofCurrentThread.remote
        home.beginDispatchedJob()
        return Guarantee { seal in
            whenEnded {
                seal(())
                home.endDispatchedJob()
            }
        }
    }
}

extension LoopGroup {
    /// Is fulfilled when all loops have ended: to wait without holding a thread. Any thread, async functions too; see
    /// `EventLoop.Remote.ended`.
    ///
    /// The last loop to end settles it. No handler is attached on the calling thread, whose loop may never be driven.
    public var ended: Guarantee<Void> {
        let home = EventLoop.ofCurrentThread.remote
        home.beginDispatchedJob()
        let left = Countdown(from: count)
        return Guarantee { seal in
            for remote in self {
                remote.whenEnded {
                    guard left.isLastStep() else { return }
                    seal(())
                    home.endDispatchedJob()
                }
            }
        }
    }
}

/// Counts down on any thread.
private final class Countdown: Sendable {
    private let left: Atomic<Int>

    init(from count: Int) { left = Atomic(count) }

    /// Counts one step; true for the step that reaches zero.
    func isLastStep() -> Bool { left.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 }
}
