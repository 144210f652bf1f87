import Glibc

/// Where a loop takes the time from.
package enum LoopClock {
    case monotonic
    case virtual(VirtualClock)

    var isVirtual: Bool {
        if case .virtual = self { true } else { false }
    }

    // Not inlined: most who ask do so in rare branches of a turn, which would be mostly made of this.
    @inline(never)
    package var now: LoopInstant {
        switch self {
        case .monotonic:
            var time = timespec()
            clock_gettime(CLOCK_MONOTONIC, &time)
            return LoopInstant(nanoseconds: Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec))
        case .virtual(let clock):
            return clock.now
        }
    }
}

/// A clock for tests that stands still while there is anything to do and jumps to the next deadline when there is
/// nothing: an hour of retries passes in the time its handlers take.
///
/// Given to a loop with `withLoop(clock:)`. Before it jumps, the loop asks the kernel once, without
/// waiting, whether a descriptor is ready; so data that has already arrived is handled before the clock moves by itself.
/// While a `ThreadPool` has jobs for the loop it does not jump but really waits for them: they take no virtual time. (So
/// a job must not wait for what only a timer of the loop would do.) Used by one thread only.
public final class VirtualClock {
    /// The present moment of this clock.
    public private(set) var now: LoopInstant

    /// A clock that starts at `start`.
    public init(start: LoopInstant = LoopInstant(nanoseconds: 0)) { now = min(start, .last) }

    /// Moves the clock on by `duration`. Timers that have become due fire in the loop's next turn. A negative duration
    /// does nothing: time does not go back.
    public func advance(by duration: Duration) { advance(to: now.advanced(by: duration)) }

    /// Moves the clock on to `moment`, if that is later than now. The last moment it reaches is a nanosecond before
    /// `distantFuture`, which is "never": a time-out that begins there is due at once, and a timer for `distantFuture` does
    /// not fire.
    public func advance(to moment: LoopInstant) { now = max(now, min(moment, .last)) }
}
