/// A moment on the loop's clock, in nanoseconds: `CLOCK_MONOTONIC`, or the virtual clock's own count.
///
/// It is unrelated to the time of day: setting the system clock moves no timer. `CLOCK_MONOTONIC` of Linux stands still
/// while the machine is suspended. Arithmetic saturates, so that `now + .seconds(Int64.max)` means "never" and does not
/// trap.
public struct LoopInstant: InstantProtocol, Hashable, Sendable, CustomStringConvertible {
    /// Nanoseconds since the clock's zero.
    public var nanoseconds: Int64

    /// Creates a moment.
    /// - Parameter nanoseconds: the time since the clock's zero.
    public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    /// A moment that never comes.
    public static var distantFuture: LoopInstant { LoopInstant(nanoseconds: .max) }

    /// The latest moment that a clock reaches.
    static var last: LoopInstant { LoopInstant(nanoseconds: .max - 1) }

    /// Adds a duration; saturates.
    /// - Parameter duration: the time to add, which may be negative.
    /// - Returns: the moment `duration` later. It is `distantFuture` only if this moment or the duration is endless
    ///   itself. Any other sum that overflows is the last moment before `distantFuture`.
    public func advanced(by duration: Duration) -> LoopInstant {
        let delay = duration.clampedNanoseconds
        let (sum, overflow) = nanoseconds.addingReportingOverflow(delay)
        return overflow ? saturated(delay) : LoopInstant(nanoseconds: sum)
    }

    @inline(never)
    private func saturated(_ delay: Int64) -> LoopInstant {
        if delay < 0 { return LoopInstant(nanoseconds: .min) }
        return delay == .max || self == .distantFuture ? .distantFuture : .last
    }

    /// Measures the time to another moment.
    /// - Parameter other: the other moment.
    /// - Returns: the time from this moment to `other`; negative if `other` is earlier.
    public func duration(to other: LoopInstant) -> Duration {
        .nanoseconds(other.nanoseconds) - .nanoseconds(nanoseconds)
    }

    /// The moment `duration` later; saturates.
    public static func + (moment: LoopInstant, duration: Duration) -> LoopInstant { moment.advanced(by: duration) }

    /// The time from the right moment to the left one.
    public static func - (end: LoopInstant, start: LoopInstant) -> Duration { start.duration(to: end) }

    /// Whether the left moment is earlier.
    public static func < (left: LoopInstant, right: LoopInstant) -> Bool { left.nanoseconds < right.nanoseconds }

    /// The moment in seconds, as `12.5 s`.
    public var description: String { "\(Double(nanoseconds) / 1e9) s" }
}

extension Duration {
    /// The duration in whole nanoseconds, rounded up so that no timer fires early, and clamped to 64 bits.
    package var clampedNanoseconds: Int64 {
        let attoseconds = attoseconds
        guard attoseconds >= 0 else {
            return attoseconds <= Int128(Int64.min) * 1_000_000_000 ? .min : Int64(attoseconds / 1_000_000_000)
        }
        // A single explicit division: `components` does several of 128 bits, which take 70 instructions and more.
        let high = UInt64(truncatingIfNeeded: attoseconds >> 64)
        guard high < 500_000_000 else { return .max }
        let (quotient, rest) = UInt64(1_000_000_000).dividingFullWidth((high, UInt64(truncatingIfNeeded: attoseconds)))
        return Int64(quotient).addingSaturating(rest > 0 ? 1 : 0)
    }
}

extension Int64 {
    @inline(__always)
    func addingSaturating(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? (other < 0 ? .min : .max) : sum
    }
}
