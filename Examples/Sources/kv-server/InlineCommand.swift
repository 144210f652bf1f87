/// A line typed by a client: words separated by blanks. Quoted text is one word, or part of one; double quotes allow
/// the escapes of C, single quotes allow `\'`.
struct InlineCommand {
    private var rest: Slice<UnsafeRawBufferPointer>

    /// The words of a line, possibly none.
    static func words(of line: UnsafeRawBufferPointer) throws(ProtocolError) -> [[UInt8]] {
        var command = InlineCommand(rest: line[...])
        var words: [[UInt8]] = []
        while let word = try command.nextWord() { words.append(word) }
        return words
    }

    private mutating func nextWord() throws(ProtocolError) -> [UInt8]? {
        rest = rest.drop(while: isBlank)
        if rest.isEmpty { return nil }
        var word: [UInt8] = []
        while let byte = rest.first, !isBlank(byte) {
            rest.removeFirst()
            if byte == quote || byte == apostrophe {
                try appendQuoted(to: &word, until: byte)
            } else {
                word.append(byte)
            }
        }
        return word
    }

    private mutating func appendQuoted(to word: inout [UInt8], until end: UInt8) throws(ProtocolError) {
        while true {
            guard let byte = rest.popFirst() else { throw .unbalancedQuotes }
            if byte == end { break }
            if byte != backslash {
                word.append(byte)
            } else if end == quote {
                word.append(unescaped())
            } else if rest.first == apostrophe {
                word.append(rest.removeFirst())
            } else {
                word.append(byte)
            }
        }
        if let next = rest.first, !isBlank(next) { throw .unbalancedQuotes }
    }

    /// The byte that an escape after a backslash stands for.
    private mutating func unescaped() -> UInt8 {
        guard let byte = rest.popFirst() else { return backslash }
        switch Unicode.Scalar(byte) {
        case "n": return 0x0A
        case "r": return 0x0D
        case "t": return 0x09
        case "b": return 0x08
        case "a": return 0x07
        case "x":
            let digits = rest.prefix(2).compactMap { Character(Unicode.Scalar($0)).hexDigitValue }
            if digits.count < 2 { return byte }
            rest.removeFirst(2)
            return UInt8(digits[0] << 4 | digits[1])
        default: return byte
        }
    }
}

extension ProtocolError {
    fileprivate static var unbalancedQuotes: ProtocolError { ProtocolError(reason: "unbalanced quotes in request") }
}

private let quote = UInt8(ascii: "\"")
private let apostrophe = UInt8(ascii: "'")
private let backslash = UInt8(ascii: "\\")

private func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || 0x09...0x0D ~= byte }
