/// Random numbers, the same for the same seed.
package struct SplitMix64: RandomNumberGenerator {
    private var state: UInt64

    package init(_ seed: UInt64) { state = seed }

    package mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var word = state
        word = (word ^ (word >> 30)) &* 0xbf58_476d_1ce4_e5b9
        word = (word ^ (word >> 27)) &* 0x94d0_49bb_1331_11eb
        return word ^ (word >> 31)
    }

    /// Below `limit`.
    package mutating func below(_ limit: Int) -> Int { Int(next() % UInt64(limit)) }

    /// True once in this many times on average.
    package mutating func once(in times: Int) -> Bool { below(times) == 0 }

    package mutating func pick<Element>(_ elements: [Element]) -> Element { elements[below(elements.count)] }

    /// `text` with one change: a piece inserted, some characters removed or doubled, or one exchanged.
    package mutating func mutated(_ text: String, inserting pieces: [String]) -> String {
        var scalars = Array(text.unicodeScalars)
        let place = below(scalars.count + 1)
        let rest = below(scalars.count - place + 1)
        switch below(4) {
        case 0: scalars.insert(contentsOf: pick(pieces).unicodeScalars, at: place)
        case 1: scalars.removeSubrange(place..<place + min(rest, 3))
        case 2: scalars.insert(contentsOf: scalars[place..<place + rest], at: place)
        default: if rest > 0 { scalars[place] = Unicode.Scalar(UInt8(below(256))) }
        }
        return String(String.UnicodeScalarView(scalars))
    }
}
