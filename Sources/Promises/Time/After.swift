import Reactor

/// Is fulfilled `delay` from now, by a timer of this thread's loop; zero and less mean the loop's next turn. Never
/// early. Timers of equal deadlines in the order of the calls.
@available(*, noasync, message: "an async function has no loop of its own; use Task.sleep")
@inlinable @inline(__always)
public func after(_ delay: Duration, file: StaticString = #fileID, line: UInt = #line) -> Guarantee<Void> {
    Guarantee(TimerCore(delay).traced(root: "after", Guarantee<Void>.self, file, line))
}

/// As `after(_:)`, with the delay in seconds.
@available(*, noasync, message: "an async function has no loop of its own; use Task.sleep")
@inlinable
public func after(seconds: Double, file: StaticString = #fileID, line: UInt = #line) -> Guarantee<Void> {
    after(.clamped(seconds: seconds), file: file, line: line)
}

/// Is fulfilled at `deadline` of this thread's loop, or in its next turn if that has passed.
@available(*, noasync, message: "an async function has no loop of its own; use Task.sleep")
@inlinable
public func after(
    deadline: EventLoop.Instant, file: StaticString = #fileID, line: UInt = #line
) -> Guarantee<Void> {
    Guarantee(TimerCore(deadline: deadline).traced(root: "after", Guarantee<Void>.self, file, line))
}

extension Duration {
    /// Seconds as they are written by hand. Two hundred years at most: more than that, and infinity, do not fit, or are
    /// never anyway. NaN is none.
    @inlinable
    static func clamped(seconds: Double) -> Duration { .seconds(seconds > 0 ? min(seconds, 6.3e9) : 0) }
}

/// A promise that is its own timer's job.
// @unchecked: the timer is only used on the loop's thread.
@usableFromInline
final class TimerCore: PromiseCore, @unchecked Sendable {
    private var timer: EventLoop.Timer?

    @usableFromInline
    init(_ delay: Duration) {
        super.init(state: State.pending, loop: EventLoop.addressOfThisThread) {
            PromiseCore.perform(Follow<Void>.self, $0, $1)
        }
        timer = EventLoop.ofCurrentThread.startTimer(after: delay, self)
    }

    @usableFromInline
    init(deadline: EventLoop.Instant) {
        super.init(state: State.pending, loop: EventLoop.addressOfThisThread) {
            PromiseCore.perform(Follow<Void>.self, $0, $1)
        }
        timer = EventLoop.ofCurrentThread.startTimer(at: deadline, self)
    }

    override func run() { fulfill(()) }

    override func cancelProducer() -> Bool { timer?.cancel() ?? false }
}
