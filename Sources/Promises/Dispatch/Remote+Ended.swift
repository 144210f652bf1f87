import Reactor
import Synchronization

extension EventLoop.Remote {
    /// A guarantee that is fulfilled when the loop has ended and released all that it held. It waits without blocking a
    /// thread.
    ///
    /// ```swift
    /// worker.stop()
    /// hang(worker.ended)
    /// ```
    ///
    /// The property may be read on any thread. The guarantee does not keep this thread's loop alive: call `hang` on it,
    /// or take a `hold()`. Read the property once, because each guarantee is kept until the loop has ended.
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
    /// A guarantee that is fulfilled when all loops have ended. It waits without blocking a thread.
    ///
    /// The property may be read on any thread, and in async functions; see `EventLoop.Remote.ended`. The last loop that
    /// ends settles the guarantee. No handler is attached on the calling thread, whose loop may never be driven.
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

/// A countdown that any thread may advance.
private final class Countdown: Sendable {
    private let left: Atomic<Int>

    init(from count: Int) { left = Atomic(count) }

    /// Counts one step; returns `true` for the step that reaches zero.
    func isLastStep() -> Bool { left.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 }
}
