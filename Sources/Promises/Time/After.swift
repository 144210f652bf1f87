import Reactor

/// A guarantee that is fulfilled `delay` from now, by a timer of this thread's loop.
///
/// ```swift
/// after(.seconds(1)).done { print("one second later") }
/// ```
///
/// A delay of zero or less means the loop's next turn. The timer never fires early. Timers with equal deadlines fire in
/// the order of the calls.
/// - Parameters:
///   - delay: the time to wait.
///   - file: the file that reports name; the caller's by default.
///   - line: the line that reports name.
/// - Returns: a guarantee without a value.
@available(*, noasync, message: "an async function has no loop of its own; use Task.sleep")
@inlinable @inline(__always)
public func after(_ delay: Duration, file: StaticString = #fileID, line: UInt = #line) -> Guarantee<Void> {
    Guarantee(TimerCore(delay).traced(root: "after", Guarantee<Void>.self, file, line))
}

/// A guarantee that is fulfilled `seconds` from now; see `after(_:)`.
/// - Parameters:
///   - seconds: the time to wait, at most 6.3e9 s. NaN and negative values count as zero.
///   - file: the file that reports name; the caller's by default.
///   - line: the line that reports name.
/// - Returns: a guarantee without a value.
@available(*, noasync, message: "an async function has no loop of its own; use Task.sleep")
@inlinable
public func after(seconds: Double, file: StaticString = #fileID, line: UInt = #line) -> Guarantee<Void> {
    after(.clamped(seconds: seconds), file: file, line: line)
}

/// A guarantee that is fulfilled at `deadline`; see `after(_:)`.
/// - Parameters:
///   - deadline: a moment on the clock of this thread's loop. One that has passed means the loop's next turn.
///   - file: the file that reports name; the caller's by default.
///   - line: the line that reports name.
/// - Returns: a guarantee without a value.
@available(*, noasync, message: "an async function has no loop of its own; use Task.sleep")
@inlinable
public func after(
    deadline: LoopInstant, file: StaticString = #fileID, line: UInt = #line
) -> Guarantee<Void> {
    Guarantee(TimerCore(deadline: deadline).traced(root: "after", Guarantee<Void>.self, file, line))
}

extension Duration {
    /// Converts seconds to a duration of at most 6.3e9 s, two hundred years. Larger values, including infinity, do not
    /// fit or mean "never" in practice. NaN and negative values become zero.
    @inlinable
    static func clamped(seconds: Double) -> Duration { .seconds(seconds > 0 ? min(seconds, 6.3e9) : 0) }
}

/// A promise that is the job of its own timer.
// @unchecked: the timer is accessed only on the loop's thread.
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
    init(deadline: LoopInstant) {
        super.init(state: State.pending, loop: EventLoop.addressOfThisThread) {
            PromiseCore.perform(Follow<Void>.self, $0, $1)
        }
        timer = EventLoop.ofCurrentThread.startTimer(at: deadline, self)
    }

    override func run() { fulfill(()) }

    override func cancelProducer() -> Bool { timer?.cancel() ?? false }
}
