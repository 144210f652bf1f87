import Promises
import ReactorIO

/// The client violates the protocol. It receives the reason, and its connection is closed.
struct ProtocolError: Error { let reason: String }

/// Decodes requests, however packets split them: arrays of bulk strings, and inline commands. Keeps its progress in an
/// incomplete request, so that it decodes no word twice.
struct RequestDecoder: FrameDecoder {
    private typealias Bytes = UnsafeRawBufferPointer

    private let session: Session
    private let limits: Limits
    /// The words of the current request, where they begin, and the number of words that have not arrived.
    private var count = 0
    private var firstWord = 0
    private var missing = 0
    /// The maximum number of bytes for the rest of the current request.
    private var bytesLeft = 0
    /// The offset of the next line or word, and the offset where the search for the end of that line continues.
    private var start = 0
    private var searched = 0

    init(for session: Session) { (self.session, limits) = (session, session.server.limits) }

    mutating func decode(_ bytes: RawSpan) throws -> DecodedFrame<Request> {
        if bytes.byteCount >= 1 << 20 { session.hasSentMuch = true }
        // The bytes are lent for the call, and nothing keeps the pointer.
        return try bytes.withUnsafeBytes { bytes throws(ProtocolError) in try decode(bytes) }
    }

    private mutating func decode(_ bytes: Bytes) throws(ProtocolError) -> DecodedFrame<Request> {
        while missing == 0 {
            var announced = number(behind: "*", bytes)
            if announced == nil {
                guard let line = try nextLine(bytes, limits.line, "too big inline request") else { return skipEmpty() }
                guard line.first == UInt8(ascii: "*") else {
                    let words = try InlineCommand.words(of: line)
                    if words.isEmpty { continue }
                    return complete(Request(words))
                }
                announced = parseInteger(line.bytes.extracting(1..<line.count))
            }
            guard let announced, announced <= limits.words else {
                throw ProtocolError(reason: "invalid multibulk length")
            }
            count = max(announced, 0)
            missing = count
            firstWord = start
            bytesLeft = limits.request
        }
        while missing > 0 {
            let lacking = try skipWord(bytes)
            if lacking > 0 { return .incomplete(missing: lacking) }
            missing -= 1
        }
        return complete(Request(count: count, at: firstWord))
    }

    private mutating func complete(_ request: Request) -> DecodedFrame<Request> {
        defer { (start, searched) = (0, 0) }
        return .frame(request, consumed: start)
    }

    /// Skips empty requests, which get no answer: the client has begun nothing with them.
    private mutating func skipEmpty() -> DecodedFrame<Request> {
        if start == 0 { return .incomplete(missing: 1) }
        defer { (start, searched) = (0, searched - start) }
        return .skipped(consumed: start)
    }

    /// - Returns: a lower bound for the number of missing bytes of the next word.
    private mutating func skipWord(_ bytes: Bytes) throws(ProtocolError) -> Int {
        let header = start
        var length = number(behind: "$", bytes)
        if length == nil {
            guard let line = try nextLine(bytes, limits.header, "too big bulk count string") else { return 1 }
            guard line.first == UInt8(ascii: "$") else {
                throw ProtocolError(reason: "expected '$', got '\(Unicode.Scalar(line.first ?? 0x20))'")
            }
            length = parseInteger(line.bytes.extracting(1..<line.count))
        }
        guard let length, 0...bytesLeft ~= length else { throw ProtocolError(reason: "invalid bulk length") }
        let end = start + length + 2
        let isHere = end <= bytes.count
        start = isHere ? end : header
        searched = start
        if isHere { bytesLeft -= length }
        return max(end - bytes.count, 0)
    }

    /// The number of a line that consists of a sign and digits, as nearly all do; `nil`, consuming nothing, if it does
    /// not, or is incomplete.
    private mutating func number(behind sign: Unicode.Scalar, _ bytes: Bytes) -> Int? {
        guard searched == start, start < bytes.count, bytes[start] == UInt8(ascii: sign) else { return nil }
        var (value, end) = (0, start + 1)
        let limit = min(end + 15, bytes.count)
        while end < limit, case let digit = bytes[end] &- 0x30, digit < 10 {
            value = value &* 10 &+ Int(digit)
            end += 1
        }
        guard end + 1 < bytes.count, bytes[end] == 0x0D, bytes[end + 1] == 0x0A, end > start + 1,
            bytes[start + 1] != 0x30 || value == 0 && end == start + 2
        else { return nil }
        start = end + 2
        searched = start
        return value
    }

    /// The next line without its terminator; `nil` if that has not arrived.
    private mutating func nextLine(
        _ bytes: Bytes, _ limit: Int, _ excess: String
    ) throws(ProtocolError) -> Bytes? {
        let end = bytes[searched...].firstIndex(of: 0x0A) ?? bytes.count
        searched = end
        if end - start > limit { throw ProtocolError(reason: excess) }
        if end == bytes.count { return nil }
        let hasReturn = end > start && bytes[end - 1] == 0x0D
        let line = Bytes(rebasing: bytes[start..<(hasReturn ? end - 1 : end)])
        start = end + 1
        searched = start
        return line
    }
}

/// The integer value of `digits`; `nil` if they are not an integer in the protocol's form.
func parseInteger(_ digits: RawSpan) -> Int? {
    guard let value = Int(decimal: digits) else { return nil }
    // No leading zero, and no zero after a sign.
    let first = digits.unsafeLoad(fromByteOffset: 0, as: UInt8.self)
    let hasSign = first == UInt8(ascii: "-")
    let leading = hasSign ? digits.unsafeLoad(fromByteOffset: 1, as: UInt8.self) : first
    return leading != UInt8(ascii: "0") || digits.byteCount == 1 ? value : nil
}
