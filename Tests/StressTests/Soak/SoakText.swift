@testable import PromisesTestSupport

/// The text of a client of a soak: bytes that show their position, or lines.
struct SoakText {
    let count: Int
    private let start: Int
    private let base: [UInt8]

    init(_ count: Int, isLines: Bool, _ dice: inout SplitMix64) {
        base = isLines ? Self.lines : Self.bytes
        let start = dice.below(base.count)
        self.start = start
        var count = count
        if isLines {
            // The last line is complete.
            while base[(start + count - 1) % base.count] != 0x0A { count += 1 }
        }
        self.count = count
    }

    /// Up to this number of its bytes from `place` on; less at its end.
    func part(_ place: Int, _ most: Int) -> [UInt8] {
        var part: [UInt8] = []
        let end = place + min(most, count - place)
        part.reserveCapacity(end - place)
        while part.count < end - place {
            let offset = (start + place + part.count) % base.count
            part += base[offset..<min(base.count, offset + end - place - part.count)]
        }
        return part
    }

    /// True if `bytes` are at `place`.
    func holds(_ bytes: UnsafeRawBufferPointer, at place: Int) -> Bool {
        guard bytes.count <= count - place, let first = bytes.baseAddress else { return bytes.isEmpty }
        return part(place, bytes.count).withUnsafeBytes { memcmp($0.baseAddress!, first, bytes.count) == 0 }
    }

    private static let bytes = pattern(65521)
    private static let lines: [UInt8] = {
        var dice = SplitMix64(7)
        var lines: [UInt8] = []
        while lines.count < 65536 {
            lines += (0..<dice.below(dice.pick([3, 80, 700]))).map { _ in UInt8(0x61 + dice.below(26)) } + [0x0A]
        }
        return lines
    }()
}
