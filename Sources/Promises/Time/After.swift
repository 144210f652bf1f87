import Reactor

/// Makes a guarantee that is fulfilled after `delay`, by a timer on this thread's loop.
///
/// ```swift
/// after(.seconds(1)).done { print("one second later") }
/// ```
///
/// Zero or less means the loop's next turn. The timer never fires early. Timers with equal deadlines fire in call
/// order.
@available(*, noasync, message: "an async function has no loop of its own; use Task.sleep")
@inlinable @inline(__always)
public func after(_ delay: Duration, file: StaticString = #fileID, line: UInt = #line) -> Guarantee<Void> {
    Guarantee(TimerPromise.make(after: delay).traced(root: "after", Guarantee<Void>.self, file, line))
}

/// Makes a guarantee that is fulfilled at `deadline`; see `after(_:)`.
///
/// ```swift
/// let end = EventLoop.current.now + .seconds(30)
/// after(deadline: end).done { print("thirty seconds later") }
/// ```
///
/// - Parameter deadline: a time on the clock of this thread's loop. A past time means the loop's next turn.
@available(*, noasync, message: "an async function has no loop of its own; use Task.sleep")
@inlinable
public func after(
    deadline: LoopInstant, file: StaticString = #fileID, line: UInt = #line
) -> Guarantee<Void> {
    Guarantee(TimerPromise.make(at: deadline).traced(root: "after", Guarantee<Void>.self, file, line))
}

/// A timer's promise: a reusable plain core that is also the timer's job. Until the core settles, its free payload
/// holds the timer's id. Used on the loop's thread only.
@usableFromInline
enum TimerPromise {
    @usableFromInline
    static func make(after delay: Duration) -> PromiseCore { make { $0.addTimer(after: delay, $1) } }

    @usableFromInline
    static func make(at deadline: LoopInstant) -> PromiseCore { make { $0.addTimer(at: deadline, $1) } }

    @inline(__always)
    private static func make(_ start: (EventLoop, PromiseCore) -> UInt64) -> PromiseCore {
        let core = PromiseCore.pending(.of(TimerWait.self))
        let timer = LoopRef.ofThisThread.borrow { start($0, core) }
        // An ended or ending loop rejects the core and drops the timer.
        if core.state.loadRelaxed().isPending { core.payload.store(TimerWait(timer: timer)) }
        return core
    }
}

extension TimerPromise {
    /// Returns the timer of a core that has not fired, on its loop's thread; `nil` if the core is not a timer's.
    static func timer(of core: PromiseCore) -> UInt64? {
        let isTimer = core.code.with([]).bits == CoreCode.of(TimerWait.self).bits
        return isTimer && core.state.loadRelaxed().isPending ? core.payload.value(as: TimerWait.self).timer : nil
    }
}

private struct TimerWait: Operation {
    let timer: UInt64

    func run(_ source: AnySource, _ core: PromiseCore) { preconditionFailure("a timer has no source") }

    static func stop(_ core: PromiseCore) -> Bool {
        let timer = core.payload.value(as: TimerWait.self).timer
        return LoopRef.ofThisThread.borrow { $0.removeTimer(timer) }
    }
}
