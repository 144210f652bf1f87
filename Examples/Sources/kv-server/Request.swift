/// A request: the name of a command and its arguments. It is one piece of memory, however many words it has: they are in it as
/// in the protocol, each behind a line with its length.
struct Request: Sequence {
    let count: Int
    private let bytes: [UInt8]

    /// - Parameter words: as in the protocol, each with `$length` before it. The decoder has checked them.
    init(count: Int, _ words: UnsafeRawBufferPointer) {
        self.count = count
        bytes = Array(words)
    }

    init(_ words: [[UInt8]]) {
        count = words.count
        bytes = Array(words.map { Array("$\($0.count)\n".utf8) + $0 + [0x0D, 0x0A] }.joined())
    }

    /// Calls `body` with the name of the command.
    func withName<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        bytes.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[Self.word(in: $0, at: 0)])) }
    }

    /// A copy of the word at `index`, which is one of the first: it is found behind those before it.
    subscript(index: Int) -> [UInt8] {
        bytes.withUnsafeBytes { bytes in
            var word = Self.word(in: bytes, at: 0)
            for _ in 0..<index { word = Self.word(in: bytes, at: word.upperBound + 2) }
            return Array(UnsafeRawBufferPointer(rebasing: bytes[word]))
        }
    }

    /// Copies of the words, in their order.
    func makeIterator() -> some IteratorProtocol<[UInt8]> {
        sequence(state: 0) { offset in
            if offset == bytes.count { return nil }
            return bytes.withUnsafeBytes { bytes in
                let word = Self.word(in: bytes, at: offset)
                offset = word.upperBound + 2
                return Array(UnsafeRawBufferPointer(rebasing: bytes[word]))
            }
        }
    }

    /// Where the word is whose `$` is at `offset`.
    private static func word(in bytes: UnsafeRawBufferPointer, at offset: Int) -> Range<Int> {
        var (start, length) = (offset + 1, 0)
        while bytes[start] != 0x0A {
            if bytes[start] != 0x0D { length = length * 10 + Int(bytes[start] & 0x0F) }
            start += 1
        }
        return start + 1..<start + 1 + length
    }
}
