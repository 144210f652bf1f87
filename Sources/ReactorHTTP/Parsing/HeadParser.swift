import Promises
import ReactorIO

/// Decodes a head as it arrives, each line once, however packets split it: RFC 9112, section 2. `First` is the decoded
/// first line.
struct HeadParser<First> {
    private let maxHead: Int
    private let maxFields: Int
    /// The offset of the next line, and that of the search for its end.
    private var start = 0
    private var searched = 0
    /// The bytes skipped before the head. They start no time limit, but count towards the size limit.
    private var skipped = 0
    private var first: First?
    private var fields = HeadFields()
    /// A response field that the next line may continue, and whether it has several lines already.
    private var held: Range<Int>?
    private var isFolded = false

    @inline(__always)
    init(maxHead: Int, maxFields: Int) { (self.maxHead, self.maxFields) = (maxHead, maxFields) }

    /// - Parameters:
    ///   - isRequest: true for a request's head.
    ///   - parse: decodes the first line at its position; returns `nil` for an empty line before it.
    ///   - take: called with all bytes of the complete head; returns `nil` if another head follows.
    @inline(__always)
    mutating func decode<Head>(
        _ bytes: Bytes, isRequest: Bool, parse: (Bytes, Int) throws(HTTPError) -> First?,
        take: (First, HeadFields, Bytes) throws(HTTPError) -> Head?
    ) throws(HTTPError) -> DecodedFrame<Head> {
        while let end = try bytes.endOfLine(from: start, searchingFrom: searched) {
            try checkLength(end)
            let (position, line) = (start, bytes.slice(start..<end))
            (start, searched) = (end + 2, end + 2)
            if first != nil, !line.isEmpty {
                if isRequest {
                    try fields.add(line, limit: maxFields, isRequest: true)
                } else {
                    try hold(line, position, bytes)
                }
            } else if let first {
                if !isRequest { try addHeld(bytes) }
                let head = try take(first, fields, bytes.slice(0..<start))
                return head.map { .frame($0, consumed: start) } ?? .skipped(consumed: skip())
            } else {
                first = try parse(line, position)
            }
        }
        try checkLength(bytes.count)
        try checkRest(bytes, isRequest: isRequest)
        searched = bytes.count
        if first == nil && start > 0 { return .skipped(consumed: skip()) }
        return .incomplete(missing: 1)
    }

    /// Refuses input that cannot become a valid line, without waiting for the line's end, which may never arrive.
    private func checkRest(_ bytes: Bytes, isRequest: Bool) throws(HTTPError) {
        if first == nil, isRequest, start < bytes.count, !isTokenByte(bytes[start]), bytes[start] != 0x0D {
            throw .bad("a method that is no token")
        }
        // A trailing CR may end the line.
        var index = searched > start ? searched - 1 : start
        while index < bytes.count {
            guard isValueByte(bytes[index]) || bytes[index] == 0x0D && index == bytes.count - 1 else {
                throw .bad("a control character in a head")
            }
            index += 1
        }
    }

    /// Holds a response's line until the next one shows whether it continues.
    private mutating func hold(_ line: Bytes, _ position: Int, _ bytes: Bytes) throws(HTTPError) {
        if let begun = held, isBlank(line[0]) {
            held = begun.lowerBound..<position + line.count + 2
            isFolded = true
        } else {
            try addHeld(bytes)
            held = position..<position + line.count + 2
        }
    }

    private mutating func addHeld(_ bytes: Bytes) throws(HTTPError) {
        guard let range = held.take() else { return }
        let line = bytes.slice(range.lowerBound..<range.upperBound - 2)
        let colon = line.position(of: UInt8(ascii: ":")) ?? 0
        if !isFolded && (colon == 0 || !isBlank(line[colon - 1])) {
            return try fields.add(line, limit: maxFields, isRequest: false)
        }
        (isFolded, fields.isIrregular) = (false, true)
        let normal = bytes.slice(range).normalized
        // The pointer lies within the array, and nothing keeps it after the call.
        try normal.span.bytes.withUnsafeBytes { bytes throws(HTTPError) in
            try fields.add(bytes.slice(0..<bytes.count - 2), limit: maxFields, isRequest: false)
        }
    }

    /// Skips the lines so far. The next call gets the remaining bytes, from index 0.
    /// - Returns: the number of bytes to skip.
    private mutating func skip() -> Int {
        let (count, before) = (start, skipped)
        self = HeadParser(maxHead: maxHead, maxFields: maxFields)
        skipped = before + count
        return count
    }

    private func checkLength(_ count: Int) throws(HTTPError) {
        guard skipped + count > maxHead else { return }
        throw HTTPError(Status(first == nil ? 414 : 431), "a head of more than \(maxHead) bytes")
    }
}

extension Bytes {
    /// These field lines, with their ends, in the only form that a sender may write. A user agent also accepts a line
    /// that begins with a blank and continues the previous one (RFC 9112, section 5.2), and blanks before a colon
    /// (5.1).
    var normalized: [UInt8] {
        var lines: [UInt8] = []
        lines.reserveCapacity(count)
        var start = 0
        while let end = position(of: 0x0A, from: start) {
            let line = slice(start..<end + 1)
            if isBlank(line[0]), !lines.isEmpty {
                lines.removeLast(2)
                while let last = lines.last, isBlank(last) { lines.removeLast() }
                lines.append(0x20)
                lines += line.drop(while: isBlank)
            } else if let colon = line.position(of: UInt8(ascii: ":")) {
                // Blanks before a name stay, and make it invalid.
                lines += line[..<colon]
                while let last = lines.last, isBlank(last) { lines.removeLast() }
                lines += line[colon...]
            } else {
                lines += line
            }
            start = end + 1
        }
        return lines
    }
}
