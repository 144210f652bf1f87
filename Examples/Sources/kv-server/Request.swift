/// A request: where its words are in the bytes that its connection lends. Each is there as in the protocol, behind a line with its
/// length, and the decoder has checked them.
struct Request {
    /// The number of words, the command's name included.
    let count: Int
    /// The words of an inline command, in the form of the others; those of other requests are in the connection's buffer.
    let line: [UInt8]?
    /// Where the `$` of the next word is.
    private var offset: Int
    /// The number of words that have not been taken.
    private(set) var left: Int

    init(count: Int, at offset: Int) {
        (self.count, self.offset, line, left) = (count, offset, nil, count)
    }

    init(_ words: [[UInt8]]) {
        (count, offset, left) = (words.count, 0, words.count)
        line = Array(words.map { Array("$\($0.count)\n".utf8) + $0 + [0x0D, 0x0A] }.joined())
    }

    /// Takes the next word, which must be there.
    /// - Returns: its place in `bytes`, which are those of the request.
    mutating func next(_ bytes: RawSpan) -> Range<Int> {
        var (start, length) = (offset + 1, 0)
        while true {
            // Within the bytes: the decoder has found the end of the line.
            let byte = bytes.unsafeLoad(fromUncheckedByteOffset: start, as: UInt8.self)
            start += 1
            if byte == 0x0A { break }
            if byte != 0x0D { length = length &* 10 &+ Int(byte & 0x0F) }
        }
        offset = start + length + 2
        left -= 1
        return start..<start + length
    }

    /// Takes the next word as an integer.
    mutating func integer(_ bytes: RawSpan) throws(CommandError) -> Int {
        guard let integer = parseInteger(bytes.extracting(next(bytes))) else { throw .notInteger }
        return integer
    }

    /// Takes the other words, as copies.
    mutating func words(_ bytes: RawSpan) -> [[UInt8]] {
        (0..<left).map { _ in [UInt8](bytes.extracting(next(bytes))) }
    }
}
