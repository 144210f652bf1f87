import Reactor

/// A guarantee that is fulfilled `delay` from now, by a timer of this thread's loop.
///
/// ```swift
/// after(.seconds(1)).done { print("one second later") }
/// ```
///
/// A delay of zero or less means the loop's next turn. The timer never fires early. Timers with equal deadlines fire in
/// the order of the calls.
@available(*, noasync, message: "an async function has no loop of its own; use Task.sleep")
@inlinable @inline(__always)
public func after(_ delay: Duration, file: StaticString = #fileID, line: UInt = #line) -> Guarantee<Void> {
    Guarantee(TimerPromise.make(after: delay).traced(root: "after", Guarantee<Void>.self, file, line))
}

/// A guarantee that is fulfilled at `deadline`; see `after(_:)`.
///
/// ```swift
/// let end = EventLoop.current.now + .seconds(30)
/// after(deadline: end).done { print("thirty seconds later") }
/// ```
///
/// - Parameter deadline: a moment on the clock of this thread's loop. One that has passed means the loop's next turn.
@available(*, noasync, message: "an async function has no loop of its own; use Task.sleep")
@inlinable
public func after(
    deadline: LoopInstant, file: StaticString = #fileID, line: UInt = #line
) -> Guarantee<Void> {
    Guarantee(TimerPromise.make(at: deadline).traced(root: "after", Guarantee<Void>.self, file, line))
}

/// The promise of a timer: a plain core, which a loop may reuse, and the job of its own timer. The payload, which is
/// free until the core settles, holds the timer's id. All of this happens on the loop's thread.
@usableFromInline
enum TimerPromise {
    /// A core that is fulfilled `delay` from now.
    @usableFromInline
    static func make(after delay: Duration) -> PromiseCore { make { $0.addTimer(after: delay, $1) } }

    /// A core that is fulfilled at `deadline`.
    @usableFromInline
    static func make(at deadline: LoopInstant) -> PromiseCore { make { $0.addTimer(at: deadline, $1) } }

    @inline(__always)
    private static func make(_ start: (EventLoop, PromiseCore) -> UInt64) -> PromiseCore {
        let core = PromiseCore.pending(.of(TimerWait.self))
        let timer = LoopRef.ofThisThread.borrow { start($0, core) }
        // A loop that has ended has rejected the core, or is about to, and no longer has the timer.
        if core.state.loadRelaxed().isPending { core.payload.store(TimerWait(timer: timer)) }
        return core
    }
}

extension TimerPromise {
    /// The timer of a core that has not fired; `nil` if the core is not a timer's. On the thread of its loop.
    static func timer(of core: PromiseCore) -> UInt64? {
        let isTimer = core.code.with([]).bits == CoreCode.of(TimerWait.self).bits
        return isTimer && core.state.loadRelaxed().isPending ? core.payload.value(as: TimerWait.self).timer : nil
    }
}

/// Represents a timer that has not fired.
private struct TimerWait: Operation {
    let timer: UInt64

    func run(_ source: AnySource, _ core: PromiseCore) { preconditionFailure("a timer has no source") }

    static func stop(_ core: PromiseCore) -> Bool {
        let timer = core.payload.value(as: TimerWait.self).timer
        return LoopRef.ofThisThread.borrow { $0.removeTimer(timer) }
    }
}
