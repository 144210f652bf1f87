import Reactor

/// The moments at which a period ends, on the clock of this thread's loop.
///
/// ```swift
/// for try await _ in ticks(every: .seconds(10)) { report() }
/// ```
///
/// The timer is armed only while a consumer waits. If the consumer falls behind, missed ticks are coalesced into the
/// latest one, which is delivered immediately.
/// - Parameter period: the time between two ticks, and from now to the first. Zero or less counts as one nanosecond.
/// - Returns: a sequence that does not end: break out of the loop, or cancel the task.
@available(*, noasync, message: "an async function has no loop of its own; make it in a synchronous function")
public func ticks(every period: Duration) -> LoopSequence<LoopInstant> {
    LoopSequence(TickSource(max(period.clampedNanoseconds, 1), on: EventLoop.ofCurrentThread))
}

private final class TickSource: LoopSource<LoopInstant> {
    private let period: Int64
    private var deadline: LoopInstant

    init(_ period: Int64, on loop: EventLoop) {
        self.period = period
        deadline = loop.now + .nanoseconds(period)
        super.init("ticks(every:)", on: loop)
    }

    override func next(isolation _: isolated (any Actor)?) async throws -> LoopInstant? {
        let late = loop.now.nanoseconds - deadline.nanoseconds
        if late < 0 {
            try await firstly { after(deadline: deadline) }.asPromise().value
        } else {
            // Skips all missed ticks except the latest.
            deadline.nanoseconds += late / period * period
        }
        defer { deadline = deadline + .nanoseconds(period) }
        return deadline
    }
}
