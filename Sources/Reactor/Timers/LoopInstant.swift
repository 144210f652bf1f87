/// A time on the loop's clock in nanoseconds: `CLOCK_MONOTONIC`, or a virtual clock's count.
///
/// Unrelated to the time of day: setting the system clock moves no timer. `CLOCK_MONOTONIC` stands still while the
/// machine is suspended. Arithmetic saturates, so `now + .seconds(Int64.max)` means "never" instead of trapping.
public struct LoopInstant: InstantProtocol, Hashable, Sendable, CustomStringConvertible {
    /// Nanoseconds since the clock's zero.
    public var nanoseconds: Int64

    /// Creates an instant.
    public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    /// An instant that never comes.
    public static var distantFuture: LoopInstant { LoopInstant(nanoseconds: .max) }

    static var last: LoopInstant { LoopInstant(nanoseconds: .max - 1) }

    /// Adds a duration; saturates.
    /// - Returns: the instant `duration` later. It is `distantFuture` only if this instant or the duration is endless;
    ///   any other overflow gives the latest instant before `distantFuture`.
    public func advanced(by duration: Duration) -> LoopInstant {
        let delay = duration.clampedNanoseconds
        if self == .distantFuture && delay >= 0 { return self }
        return LoopInstant(nanoseconds: Self.deadline(delay, after: nanoseconds))
    }

    /// Returns the deadline `delay` nanoseconds after `now`. Only an endless delay means "never"; any other overflow
    /// gives a clock's last instant.
    @inline(__always)
    static func deadline(_ delay: Int64, after now: Int64) -> Int64 {
        let sum = now.addingSaturating(delay)
        return sum == .max && delay < .max ? last.nanoseconds : sum
    }

    /// Measures the time to another instant.
    /// - Returns: the time from this instant to `other`, negative if `other` is earlier.
    public func duration(to other: LoopInstant) -> Duration {
        .nanoseconds(other.nanoseconds) - .nanoseconds(nanoseconds)
    }

    /// Adds a duration; saturates.
    public static func + (moment: LoopInstant, duration: Duration) -> LoopInstant { moment.advanced(by: duration) }

    /// Returns the time from the right instant to the left one.
    public static func - (end: LoopInstant, start: LoopInstant) -> Duration { start.duration(to: end) }

    /// Returns true if the left instant is earlier.
    public static func < (left: LoopInstant, right: LoopInstant) -> Bool { left.nanoseconds < right.nanoseconds }

    /// The instant in seconds, for example `12.5 s`.
    public var description: String { "\(Double(nanoseconds) / 1e9) s" }
}

extension Duration {
    /// Whole nanoseconds, rounded up so that no timer fires early, and clamped to 64 bits.
    // Inlined where timers start, except for negative and very long durations.
    @inline(__always)
    package var clampedNanoseconds: Int64 {
        let attoseconds = attoseconds
        let high = UInt64(truncatingIfNeeded: attoseconds >> 64)
        // As an unsigned number, a negative duration's high half is also larger.
        guard high < 499_999_999 else { return Self.clamped(attoseconds) }
        // One explicit division: `components` does several with 128 bits, in more than 70 instructions.
        let (quotient, rest) = UInt64(1_000_000_000).dividingFullWidth((high, UInt64(truncatingIfNeeded: attoseconds)))
        // No overflow: the guard excludes the last second before `Int64.max`.
        return Int64(truncatingIfNeeded: quotient) &+ (rest > 0 ? 1 : 0)
    }

    /// Returns the nanoseconds for a negative or very long duration.
    @inline(never)
    private static func clamped(_ attoseconds: Int128) -> Int64 {
        let (quotient, rest) = attoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        return Int64(clamping: quotient + (rest > 0 ? 1 : 0))
    }
}

extension Int64 {
    @inline(__always)
    func addingSaturating(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? (other < 0 ? .min : .max) : sum
    }
}
