/// Delays of timers that must not fire, the same for all contestants: spread between 10 and 20 minutes.
public struct Delays {
    /// The number of outstanding timers in the row of the crowded loop.
    public static let crowd = 200_000

    private var state: UInt64 = 1

    /// Always the same sequence.
    public init() {}

    /// Milliseconds.
    public mutating func next() -> Int64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return 600_000 + Int64((state >> 33) % 600_000)
    }
}
