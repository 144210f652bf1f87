import Reactor

/// The moments `period`, twice, three times `period` from now, on this thread's loop, for `for await`.
///
/// ```swift
/// for try await _ in ticks(every: .seconds(10)) { report() }
/// ```
///
/// No timer is armed while nobody waits. Who takes longer than a period gets the last moment that has passed, at once, and
/// not each of those that were missed. A period of zero or less is a nanosecond. It has no end of its own: break, or cancel the
/// task.
@available(*, noasync, message: "an async function has no loop of its own; make it in a synchronous one of the loop's")
public func ticks(every period: Duration) -> LoopSequence<EventLoop.Instant> {
    let loop = EventLoop.ofThisThread
    let clockwork = Clockwork(max(period.clampedNanoseconds, 1), from: loop.now)
    return LoopSequence("ticks(every:)", on: loop) {
        if !clockwork.skip(to: loop.now) {
            try await firstly { after(deadline: clockwork.next) }.asPromise().value
        }
        return clockwork.take()
    }
}

/// When the next tick is due. Of the loop's thread.
private final class Clockwork {
    private let period: Int64
    private(set) var next: EventLoop.Instant

    init(_ period: Int64, from start: EventLoop.Instant) {
        self.period = period
        next = start + .nanoseconds(period)
    }

    /// Leaves out those that have been missed, but for the last. Answers whether one is due.
    func skip(to now: EventLoop.Instant) -> Bool {
        guard next <= now else { return false }
        next.nanoseconds += (now.nanoseconds - next.nanoseconds) / period * period
        return true
    }

    func take() -> EventLoop.Instant {
        defer { next = next + .nanoseconds(period) }
        return next
    }
}
