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
    LoopSequence(TickSource(max(period.clampedNanoseconds, 1), on: EventLoop.ofCurrentThread))
}

private final class TickSource: LoopSource<EventLoop.Instant> {
    private let period: Int64
    private var deadline: EventLoop.Instant

    init(_ period: Int64, on loop: EventLoop) {
        self.period = period
        deadline = loop.now + .nanoseconds(period)
        super.init("ticks(every:)", on: loop)
    }

    override func next(isolation _: isolated (any Actor)?) async throws -> EventLoop.Instant? {
        let late = loop.now.nanoseconds - deadline.nanoseconds
        if late < 0 {
            try await firstly { after(deadline: deadline) }.asPromise().value
        } else {
            // Those that have been missed are left out, but for the last.
            deadline.nanoseconds += late / period * period
        }
        defer { deadline = deadline + .nanoseconds(period) }
        return deadline
    }
}
