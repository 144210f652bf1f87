/// A clock for tests. It stands still while the loop has work, then jumps to the next deadline: an hour of retries
/// takes only its handlers' time.
///
/// ```swift
/// let clock = VirtualClock()
/// EventLoop.withLoop(clock: clock) { loop in
///     loop.schedule(after: .seconds(3600)) { print("one hour later") }
///     try! loop.run()                                // returns at once
/// }
/// ```
///
/// Pass the clock to `withLoop(clock:)`, and use it on one thread only. Before a jump, the loop polls the kernel
/// without waiting, so arrived data comes first. While a `ThreadPool` has jobs for the loop, the loop really waits for
/// them, in no virtual time. (So a job must not wait for one of the loop's timers.) While a task works for the loop,
/// the clock stands still. While the task waits for the loop, for example for a timer, the clock continues.
public final class VirtualClock {
    /// The clock's current time.
    @exclusivity(unchecked) public private(set) var now: LoopInstant

    /// Creates a clock.
    public init(start: LoopInstant = LoopInstant(nanoseconds: 0)) { now = min(start, .last) }

    /// Advances the clock by `duration`. Timers that become due fire in the loop's next turn.
    /// - Parameter duration: the time to add. A negative duration has no effect.
    public func advance(by duration: Duration) { advance(to: now.advanced(by: duration)) }

    /// Advances the clock to `moment`, but no further than a nanosecond before `distantFuture`, which means "never". A
    /// time-out that begins then is due at once, and a timer for `distantFuture` does not fire.
    /// - Parameter moment: the new time. No effect unless it is later than now.
    package func advance(to moment: LoopInstant) { now = max(now, min(moment, .last)) }
}
