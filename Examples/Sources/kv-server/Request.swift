/// A request: the position of its words in the bytes that the connection lends. Each word is encoded as in the
/// protocol, after a line with its length, and has been checked by the decoder.
struct Request {
    /// The number of words, including the command's name.
    let count: Int
    /// The words of an inline command, encoded like the others; those of other requests are in the connection's buffer.
    let line: [UInt8]?
    /// The offset of the next word's `$`.
    private var offset: Int
    /// The number of words not taken yet.
    private(set) var left: Int

    init(count: Int, at offset: Int) {
        (self.count, self.offset, line, left) = (count, offset, nil, count)
    }

    init(_ words: [[UInt8]]) {
        (count, offset, left) = (words.count, 0, words.count)
        line = Array(words.map { Array("$\($0.count)\n".utf8) + $0 + [0x0D, 0x0A] }.joined())
    }

    /// Takes the next word, which must exist.
    /// - Returns: its range in `bytes`, the bytes of the request.
    mutating func next(_ bytes: RawSpan) -> Range<Int> {
        var (start, length) = (offset + 1, 0)
        while true {
            // In bounds: the decoder has found the end of the line.
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

    /// Takes the remaining words, as copies.
    mutating func words(_ bytes: RawSpan) -> [[UInt8]] {
        (0..<left).map { _ in [UInt8](bytes.extracting(next(bytes))) }
    }
}
