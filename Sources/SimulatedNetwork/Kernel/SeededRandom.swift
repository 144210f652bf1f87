/// Random numbers from a seed, the same on every machine: SplitMix64.
///
/// ```swift
/// try forEachSeed(1...1000) { network in
///     let crashes = network.random.happens(0.1)
///     let delay = Int64.random(in: 0...5000, using: &network.random)
///     …
/// }
/// ```
public struct SeededRandom: RandomNumberGenerator, Sendable {
    private var state: UInt64

    /// Creates a generator.
    public init(seed: UInt64) { state = seed }

    /// The next 64 bits.
    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// Returns true with this probability. Draws no number for 0.
    public mutating func happens(_ probability: Double) -> Bool {
        probability > 0 && Double(next() >> 11) < probability * Double(UInt64(1) << 53)
    }

    // Independent of the standard library's helpers, which may change with its version.

    /// Returns a number in the range, uniform except for a bias of at most one in 2³².
    mutating func number(in range: ClosedRange<Int64>) -> Int64 {
        let width = UInt64(range.upperBound &- range.lowerBound) &+ 1
        return width == 0 ? Int64(bitPattern: next()) : range.lowerBound &+ Int64(next() % width)
    }

    mutating func number(below bound: Int) -> Int { bound <= 1 ? 0 : Int(next() % UInt64(bound)) }

    mutating func shuffle<Element>(_ array: inout [Element]) {
        for last in stride(from: array.count - 1, to: 0, by: -1) { array.swapAt(last, number(below: last + 1)) }
    }
}
