import Reactor

/// Is fulfilled `delay` from now, by a timer of this thread's loop; zero and less mean the loop's next turn. Never
/// early. Timers of equal deadlines in the order of the calls.
@available(*, noasync, message: "an async function has no loop of its own; use Task.sleep")
public func after(_ delay: Duration) -> Guarantee<Void> {
    let core = TimerCore()
    core.timer = EventLoop.ofThisThread.startTimer(after: delay, core)
    return Guarantee(core)
}

/// As `after(_:)`, with the delay in seconds.
@available(*, noasync, message: "an async function has no loop of its own; use Task.sleep")
public func after(seconds: Double) -> Guarantee<Void> {
    // Two hundred years: more than that, and infinity, do not fit a Duration, or are never anyway. NaN is none.
    after(.seconds(seconds > 0 ? min(seconds, 6.3e9) : 0))
}

/// A promise that is its own timer's job.
// @unchecked: the timer is only used on the loop's thread.
private final class TimerCore: Core, @unchecked Sendable {
    var timer: EventLoop.Timer?

    init() {
        super.init(state: State.pending, loop: EventLoop.addressOfThisThread) {
            Core.perform(Follow<Void>.self, $0, $1)
        }
    }

    override func run() { fulfill(()) }

    override func stopProducing() -> Bool { timer?.cancel() ?? false }
}
