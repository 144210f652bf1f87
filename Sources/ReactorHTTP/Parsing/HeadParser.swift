import Promises
import ReactorIO

/// Decodes a head as it arrives, each line once, however the packets split it: RFC 9112, section 2. `First` is the
/// decoded first line.
struct HeadParser<First> {
    private let maxHead: Int
    private let maxFields: Int
    /// Where the next line begins, and where the search for its end continues.
    private var start = 0
    private var searched = 0
    /// Bytes that are not part of the head and start no time limit. They count towards the size limit.
    private var skipped = 0
    /// The decoded first line, once it has arrived.
    private var first: First?
    private var fields = HeadFields()
    /// A response field that the next line may continue, and whether it spans several lines already.
    private var held: Range<Int>?
    private var isFolded = false

    @inline(__always)
    init(maxHead: Int, maxFields: Int) { (self.maxHead, self.maxFields) = (maxHead, maxFields) }

    /// - Parameters:
    ///   - isRequest: whether this is the head of a request.
    ///   - parse: decodes the first line, given its position; returns `nil` for an empty one before it.
    ///   - take: called with the complete head, all of its bytes; returns `nil` if the head precedes another one.
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

    /// Refuses input that cannot become a valid line, without waiting for its end, which may never arrive.
    private func checkRest(_ bytes: Bytes, isRequest: Bool) throws(HTTPError) {
        if first == nil, isRequest, start < bytes.count, !isTokenByte(bytes[start]), bytes[start] != 0x0D {
            throw .bad("a method that is no token")
        }
        // A trailing CR may be the one that ends the line.
        var index = searched > start ? searched - 1 : start
        while index < bytes.count {
            guard isValueByte(bytes[index]) || bytes[index] == 0x0D && index == bytes.count - 1 else {
                throw .bad("a control character in a head")
            }
            index += 1
        }
    }

    /// Keeps a line of a response until it is known whether the next one continues it.
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
        // The pointer lies within the array for the call, and nothing keeps it.
        try normal.span.bytes.withUnsafeBytes { bytes throws(HTTPError) in
            try fields.add(bytes.slice(0..<bytes.count - 2), limit: maxFields, isRequest: false)
        }
    }

    /// Skips the lines so far: the remaining bytes are passed again, counted from 0.
    /// - Returns: how many bytes to skip.
    private mutating func skip() -> Int {
        let (count, before) = (start, skipped)
        self = HeadParser(maxHead: maxHead, maxFields: maxFields)
        skipped = before + count
        return count
    }

    /// Refuses a head above the size limit, whether in one line or in many.
    private func checkLength(_ count: Int) throws(HTTPError) {
        guard skipped + count > maxHead else { return }
        throw HTTPError(Status(first == nil ? 414 : 431), "a head of more than \(maxHead) bytes")
    }
}

extension Bytes {
    /// Field lines with their ends, in the form that a sender must write. A user agent accepts two others: a line that
    /// begins with a blank continues the previous one (RFC 9112, section 5.2), and there may be blanks before a colon
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
