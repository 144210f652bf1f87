extension FixedWidthInteger {
    /// Creates a number from decimal ASCII digits; `nil` if the text is empty, does not fit, or contains anything else,
    /// such as a sign or space. (The standard library accepts a sign.)
    package init?(decimal text: some StringProtocol) {
        guard !text.isEmpty, text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else {
            return nil
        }
        self.init(text)
    }
}

extension StringProtocol {
    /// Returns true if the bytes begin with `scalar`, which must be ASCII. `hasPrefix` and `first` compare characters,
    /// and a delimiter followed by a combining mark is a different character.
    package func begins(with scalar: Unicode.Scalar) -> Bool { utf8.first == UInt8(ascii: scalar) }

    /// Returns the text after `prefix`, compared by bytes; `nil` without the prefix.
    package func rest(after prefix: StaticString) -> SubSequence? {
        prefix.withUTF8Buffer { bytes -> SubSequence? in
            guard utf8.starts(with: bytes) else { return nil }
            return self[utf8.index(startIndex, offsetBy: bytes.count)...]
        }
    }

    /// Returns the parts between the bytes equal to `scalar`, which must be ASCII: at most `maxSplits + 1`, including
    /// empty ones.
    package func parts(separatedBy scalar: Unicode.Scalar, maxSplits: Int = .max) -> [SubSequence] {
        var parts: [SubSequence] = []
        var start = startIndex
        while parts.count < maxSplits, let end = utf8[start...].firstIndex(of: UInt8(ascii: scalar)) {
            parts.append(self[start..<end])
            start = utf8.index(after: end)
        }
        parts.append(self[start...])
        return parts
    }

    /// The text on one log line. Characters that control a terminal, end a line or change the writing direction appear
    /// as `\n` or `\u{1B}`, because a peer may have chosen them.
    package var inOneLine: String {
        if utf8.allSatisfy({ 0x20..<0x7F ~= $0 }) { return String(self) }
        var text = ""
        for scalar in unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control where scalar.value < 0x20: text += scalar.escaped(asASCII: true)
            case .control, .format, .lineSeparator, .paragraphSeparator:
                text += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
            default: text.unicodeScalars.append(scalar)
            }
        }
        return text
    }
}
