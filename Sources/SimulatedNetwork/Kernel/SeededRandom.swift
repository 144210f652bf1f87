/// The dice of a simulation: SplitMix64, so that a seed gives the same numbers on every machine and with every version
/// of the standard library, whose own helpers may change.
struct SeededRandom {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// A number in the range, uniform except for a bias of at most one in 2³².
    mutating func number(in range: ClosedRange<Int64>) -> Int64 {
        let width = UInt64(range.upperBound &- range.lowerBound) &+ 1
        return width == 0 ? Int64(bitPattern: next()) : range.lowerBound &+ Int64(next() % width)
    }

    mutating func number(below bound: Int) -> Int { bound <= 1 ? 0 : Int(next() % UInt64(bound)) }

    /// True with that probability; no number is drawn for 0.
    mutating func happens(_ probability: Double) -> Bool {
        probability > 0 && Double(next() >> 11) < probability * Double(UInt64(1) << 53)
    }

    mutating func shuffle<Element>(_ array: inout [Element]) {
        for last in stride(from: array.count - 1, to: 0, by: -1) { array.swapAt(last, number(below: last + 1)) }
    }
}
