import ReactorLibc

/// Bytes lent for a call. No function keeps them.
typealias Bytes = UnsafeRawBufferPointer

extension Bytes {
    /// The bytes in `range`, indexed from 0.
    @inline(__always)
    func slice(_ range: Range<Int>) -> Bytes { Bytes(rebasing: self[range]) }

    /// The bytes as UTF-8 text. Invalid bytes are replaced.
    var text: String { String(decoding: self, as: UTF8.self) }

    @inline(__always)
    func position(of byte: UInt8, from start: Int = 0) -> Int? {
        guard let baseAddress, start < count, let hit = memchr(baseAddress + start, CInt(byte), count - start) else {
            return nil
        }
        return UnsafeRawPointer(hit) - baseAddress
    }

    func isEqual(to text: StaticString) -> Bool {
        count == text.utf8CodeUnitCount
            && memcmp(baseAddress ?? UnsafeRawPointer(text.utf8Start), text.utf8Start, count) == 0
    }

    func begin(with other: [UInt8]) -> Bool {
        guard let baseAddress, count >= other.count else { return other.isEmpty }
        return other.withUnsafeBytes { $0.isEmpty || memcmp(baseAddress, $0.baseAddress!, $0.count) == 0 }
    }

    /// True when the bytes equal `name` (in lower case), ignoring case.
    func isEqual(ignoringCase name: StaticString) -> Bool {
        guard count == name.utf8CodeUnitCount else { return false }
        for index in 0..<count where lowercased(self[index]) != name.utf8Start[index] { return false }
        return true
    }

    /// True when the line at `start` is a field of this name, ignoring case.
    @inline(__always)
    func line(_ start: Int, isNamed name: UnsafeBufferPointer<UInt8>) -> Bool {
        guard start + name.count < count, self[start + name.count] == UInt8(ascii: ":") else { return false }
        for index in 0..<name.count where lowercased(self[start + index]) != lowercased(name[index]) { return false }
        return true
    }

    /// `range` without blanks and tabs at both ends.
    func trimmed(_ range: Range<Int>) -> Range<Int> {
        var range = range
        while let first = range.first, isBlank(self[first]) { range.removeFirst() }
        while let last = range.last, isBlank(self[last]) { range.removeLast() }
        return range
    }

    var trimmed: Bytes { slice(trimmed(0..<count)) }

    /// Calls `body` with each trimmed, possibly empty, element of a comma-separated list.
    func forEachElement<Failure: Error>(_ body: (Bytes) throws(Failure) -> Void) throws(Failure) {
        var start = 0
        while start <= count {
            let end = position(of: UInt8(ascii: ","), from: start) ?? count
            try body(slice(start..<end).trimmed)
            start = end + 1
        }
    }

    /// True when this list element is `element` (in lower case), with any parameters except a weight of 0.
    func names(_ element: StaticString) -> Bool {
        let end = position(of: UInt8(ascii: ";")) ?? count
        guard slice(0..<end).trimmed.isEqual(ignoringCase: element) else { return false }
        var start = end + 1
        while start < count {
            let end = position(of: UInt8(ascii: ";"), from: start) ?? count
            let parameter = slice(start..<end).trimmed
            if parameter.count > 2, parameter.slice(0..<2).isEqual(ignoringCase: "q="),
                parameter.dropFirst(2).allSatisfy({ $0 == UInt8(ascii: "0") || $0 == UInt8(ascii: ".") })
            {
                return false
            }
            start = end + 1
        }
        return true
    }

    /// Finds the CR that ends the line at `start`; `nil` before it has arrived. Only CR LF ends a line: if two
    /// recipients disagreed about line ends, one message could smuggle another.
    @inline(__always)
    func endOfLine(from start: Int, searchingFrom searched: Int) throws(HTTPError) -> Int? {
        guard let newline = position(of: 0x0A, from: searched) else { return nil }
        guard newline > start, self[newline - 1] == 0x0D else { throw .bad("a line that does not end with CR LF") }
        return newline - 1
    }

    /// The number of leading ASCII letters and hyphens, checked eight at a time, the last group overlapping. Callers
    /// check the rest of a name byte by byte.
    @inline(__always)
    var lengthOfName: Int {
        prefixOfWords { word in
            // Each result is in a byte's highest bit. The sums do not carry, because the highest bits are masked.
            let seven = word & ~Self.highBits
            let lower = seven | Self.ones &* 0x20
            let isFromA: UInt64 = lower &+ Self.ones &* (0x80 - 0x61)
            let isAboveZ: UInt64 = lower &+ Self.ones &* (0x7F - 0x7A)
            let isNoHyphen = (seven ^ Self.ones &* 0x2D) &+ Self.ones &* 0x7F
            return (isFromA & ~isAboveZ | ~isNoHyphen) & ~word
        }
    }

    /// The number of leading letters, digits, hyphens and dots, checked eight at a time.
    @inline(__always)
    var lengthOfDomain: Int {
        // 0x2D...0x39 without the slash: hyphen, dot and digits.
        prefixOfWords { word in
            (Self.letters(word) | Self.range(word, 0x2D, 0x39)) & ~Self.range(word, 0x2F, 0x2F)
        }
    }

    /// Counts the leading bytes for which `isGood`, called with groups of eight, sets the highest bit. The last group
    /// overlaps. Returns 0 for fewer than eight bytes.
    @inline(__always)
    private func prefixOfWords(_ isGood: (UInt64) -> UInt64) -> Int {
        if count < 8 { return 0 }
        var index = 0
        while true {
            // Each load lies within the buffer, since `index` is at most `count - 8`, and needs no alignment.
            let word = UInt64(littleEndian: loadUnaligned(fromByteOffset: index, as: UInt64.self))
            let bad = ~isGood(word) & Self.highBits
            if bad != 0 { return index + bad.trailingZeroBitCount / 8 }
            if index == count - 8 { return count }
            index = Swift.min(index + 8, count - 8)
        }
    }

    private static var highBits: UInt64 { 0x8080_8080_8080_8080 }
    private static var ones: UInt64 { 0x0101_0101_0101_0101 }

    /// Sets the highest bit of each ASCII letter.
    @inline(__always)
    private static func letters(_ word: UInt64) -> UInt64 { range(word | ones &* 0x20, 0x61, 0x7A) & ~word }

    /// Sets the highest bit of each byte from `low` to `high`, both below 0x80.
    @inline(__always)
    private static func range(_ word: UInt64, _ low: UInt8, _ high: UInt8) -> UInt64 {
        // No byte's sum carries, since the highest bits are masked. `& ~word` excludes bytes that have one.
        let seven = word & ~highBits
        let isLow = seven &+ ones &* UInt64(0x80 - low)
        let isAbove = seven &+ ones &* UInt64(0x7F - high)
        return isLow & ~isAbove & ~word & highBits
    }

    /// True when all bytes are allowed in a field value. Tests groups of eight, the last overlapping, for control
    /// characters. If it finds one, tests each byte, because a tab is allowed.
    @inline(__always)
    var isValue: Bool {
        if count < 8 { return allSatisfy(isValueByte) }
        var found = controls(at: count - 8)
        var index = 0
        while index < count - 8 {
            found |= controls(at: index)
            index += 8
        }
        return found & Self.highBits == 0 || allSatisfy(isValueByte)
    }

    /// Sets the highest bit of each control character in the 8 bytes from `index`, and perhaps of the byte after one.
    @inline(__always)
    private func controls(at index: Int) -> UInt64 {
        // The load lies within the buffer, since `index` is at most `count - 8`. It needs no alignment.
        let word = UInt64(littleEndian: loadUnaligned(fromByteOffset: index, as: UInt64.self))
        let deletes = word ^ Self.ones &* 0x7F
        return (word &- Self.ones &* 0x20) & ~word | (deletes &- Self.ones) & ~deletes
    }

    /// True when all bytes are visible ASCII except `#`: clients send no fragment.
    @inline(__always)
    var isTarget: Bool {
        if count < 8 { return allSatisfy { isVisible($0) && $0 != UInt8(ascii: "#") } }
        return prefixOfWords { Self.range($0, 0x21, 0x7E) & ~Self.range($0, 0x23, 0x23) } == count
    }

    /// True when the bytes end in ` HTTP/1.1`.
    @inline(__always)
    var endsInUsualVersion: Bool {
        // The load lies within the last eight bytes.
        count >= 9 && self[count - 9] == 0x20
            && UInt64(bigEndian: loadUnaligned(fromByteOffset: count - 8, as: UInt64.self)) == 0x4854_5450_2F31_2E31
    }
}

@inline(__always)
func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

@inline(__always)
func lowercased(_ byte: UInt8) -> UInt8 { 0x41...0x5A ~= byte ? byte | 0x20 : byte }

/// True for a byte of a token, such as a method or field name: RFC 9110, section 5.6.2.
@inline(__always)
func isTokenByte(_ byte: UInt8) -> Bool {
    if byte < 0x40 { return 0x03FF_6CFA_0000_0000 as UInt64 >> UInt64(byte) & 1 == 1 }
    return byte < 0x80 && 0x57FF_FFFF_C7FF_FFFE as UInt64 >> UInt64(byte & 0x3F) & 1 == 1
}

/// True for a byte of a field value: no control character but the tab, so no CR, LF or NUL.
@inline(__always)
func isValueByte(_ byte: UInt8) -> Bool { byte >= 0x20 && byte != 0x7F || byte == 0x09 }

/// True for a byte of a host name: visible, and none of the URI delimiters `/ ? # @ \ " < > ^ ` { | } [ ] :`.
@inline(__always)
func isHostByte(_ byte: UInt8) -> Bool {
    let (low, high) = (0x2BFF_7FF2_0000_0000 as UInt64, 0x47FF_FFFE_87FF_FFFE as UInt64)
    return byte < 0x80 && (byte < 0x40 ? low : high) >> UInt64(byte & 0x3F) & 1 == 1
}

@inline(__always)
func isVisible(_ byte: UInt8) -> Bool { 0x21...0x7E ~= byte }

@inline(__always)
func isDigit(_ byte: UInt8) -> Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte }

func hexadecimal(_ byte: UInt8) -> Int? {
    switch lowercased(byte) {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): Int(byte & 15)
    case UInt8(ascii: "a")...UInt8(ascii: "f"): Int(byte & 15) + 9
    default: nil
    }
}

func isAddressByte(_ byte: UInt8) -> Bool { hexadecimal(byte) != nil || ":.".utf8.contains(byte) }
