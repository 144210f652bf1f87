import Promises

/// Decodes a head as it arrives, each line once, however the packets split it: RFC 9112, section 2. `First` is what its first
/// line says.
struct HeadParser<First> {
    private let maxHead: Int
    private let maxFields: Int
    /// Where the next line begins, and where the search for its end continues.
    private var start = 0
    private var searched = 0
    /// Bytes that are no part of the head, and begin no time limit. They count for the limit of bytes.
    private var skipped = 0
    /// Present once the first line has been decoded.
    private var first: First?
    private var fields = HeadFields()

    @inline(__always)
    init(maxHead: Int, maxFields: Int) { (self.maxHead, self.maxFields) = (maxHead, maxFields) }

    /// - Parameters:
    ///   - isRequest: whether fields of requests count.
    ///   - parse: decodes the first line, which begins at a position; returns `nil` for an empty one that precedes it.
    ///   - take: gets the head when it is complete, with all of its bytes; returns `nil` if it precedes another one.
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
                try fields.add(line, limit: maxFields, isRequest: isRequest)
            } else if let first {
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

    /// Refuses what cannot become a line, though its end has not arrived, and may never do.
    private func checkRest(_ bytes: Bytes, isRequest: Bool) throws(HTTPError) {
        if first == nil, isRequest, start < bytes.count, !isTokenByte(bytes[start]), bytes[start] != 0x0D {
            throw .bad("a method that is no token")
        }
        // A CR at the end may be that of the line.
        var index = searched > start ? searched - 1 : start
        while index < bytes.count {
            guard isValueByte(bytes[index]) || bytes[index] == 0x0D && index == bytes.count - 1 else {
                throw .bad("a control character in a head")
            }
            index += 1
        }
    }

    /// Skips the lines so far: the bytes behind them come again, counted from 0.
    /// - Returns: how many bytes to skip.
    private mutating func skip() -> Int {
        let (count, before) = (start, skipped)
        self = HeadParser(maxHead: maxHead, maxFields: maxFields)
        skipped = before + count
        return count
    }

    /// Refuses a head with more bytes than allowed, whether they are one line or many.
    private func checkLength(_ count: Int) throws(HTTPError) {
        guard skipped + count > maxHead else { return }
        throw HTTPError(Status(first == nil ? 414 : 431), "a head of more than \(maxHead) bytes")
    }
}
