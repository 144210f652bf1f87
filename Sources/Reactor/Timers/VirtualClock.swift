/// A clock for tests that stands still while the loop has anything to do, and jumps to the next deadline when it has
/// nothing: an hour of retries passes in the time that its handlers take.
///
/// ```swift
/// let clock = VirtualClock()
/// EventLoop.withLoop(clock: clock) { loop in
///     loop.schedule(after: .seconds(3600)) { print("one hour later") }
///     try! loop.run()                                // returns at once
/// }
/// ```
///
/// Pass it to `withLoop(clock:)`, and use it on one thread only. Before a jump, the loop polls the kernel once, without
/// waiting, so data that has already arrived is handled first. While a `ThreadPool` has jobs for the loop, the loop
/// does not jump but really waits for them: they take no virtual time. (A job must therefore not wait for something
/// that only a timer of the loop would do.) While a task that the loop waits for works, the clock stands still; while
/// that task waits for the loop, for a timer for example, the clock continues.
public final class VirtualClock {
    /// The current moment of this clock.
    @exclusivity(unchecked) public private(set) var now: LoopInstant

    /// Creates a clock.
    public init(start: LoopInstant = LoopInstant(nanoseconds: 0)) { now = min(start, .last) }

    /// Advances the clock by `duration`. Timers that become due fire in the loop's next turn.
    /// - Parameter duration: the time to add. A negative one has no effect: time does not run backwards.
    public func advance(by duration: Duration) { advance(to: now.advanced(by: duration)) }

    /// Advances the clock to `moment`. The last moment that the clock reaches is a nanosecond before `distantFuture`,
    /// which means "never": a time-out that begins at the last moment is due at once, and a timer for `distantFuture`
    /// does not fire.
    /// - Parameter moment: the new time. One that is not later than now has no effect.
    package func advance(to moment: LoopInstant) { now = max(now, min(moment, .last)) }
}
