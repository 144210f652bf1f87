import Promises

/// The client does not speak the protocol. It receives the reason, and its connection is closed.
struct ProtocolError: Error { let reason: String }

/// Decodes requests, however the packets split them: arrays of bulk strings, and inline commands. It remembers what it has
/// decoded of a request that is not complete, so that it decodes no byte twice.
struct RequestDecoder: FrameDecoder {
    private typealias Bytes = UnsafeRawBufferPointer

    private let limits: Limits
    /// The words of the current request, where they begin, and the number of those that have not arrived.
    private var count = 0
    private var firstWord = 0
    private var missing = 0
    /// The length of the current word, once its header has been decoded.
    private var length: Int?
    /// Bytes that the rest of the current request may have.
    private var bytesLeft = 0
    /// Where the next line or word begins, and where the search for the end of that line continues.
    private var start = 0
    private var searched = 0

    init(_ limits: Limits) { self.limits = limits }

    mutating func decode(_ bytes: RawSpan) throws -> DecodedFrame<Request> {
        // The bytes are lent for the call, and nothing keeps the pointer.
        try bytes.withUnsafeBytes { bytes throws(ProtocolError) in try decode(bytes) }
    }

    private mutating func decode(_ bytes: Bytes) throws(ProtocolError) -> DecodedFrame<Request> {
        while missing == 0 {
            guard let line = try nextLine(bytes, limits.line, "too big inline request") else { return skipEmpty() }
            guard line.first == UInt8(ascii: "*") else {
                let words = try InlineCommand.words(of: line)
                if words.isEmpty { continue }
                return complete(Request(words))
            }
            guard let announced = parseInteger(line.dropFirst()), announced <= limits.words else {
                throw ProtocolError(reason: "invalid multibulk length")
            }
            count = max(announced, 0)
            missing = count
            firstWord = start
            bytesLeft = limits.request
        }
        while missing > 0 {
            guard try skipWord(bytes) else {
                return .incomplete(missing: length.map { start + $0 + 2 - bytes.count } ?? 1)
            }
            missing -= 1
        }
        return complete(Request(count: count, Bytes(rebasing: bytes[firstWord..<start])))
    }

    private mutating func complete(_ request: Request) -> DecodedFrame<Request> {
        defer { (start, searched) = (0, 0) }
        return .frame(request, consumed: start)
    }

    /// Empty requests, before which the client has begun nothing, get no answer.
    private mutating func skipEmpty() -> DecodedFrame<Request> {
        if start == 0 { return .incomplete(missing: 1) }
        defer { (start, searched) = (0, searched - start) }
        return .skipped(consumed: start)
    }

    /// - Returns: whether the next word has arrived.
    private mutating func skipWord(_ bytes: Bytes) throws(ProtocolError) -> Bool {
        if length == nil {
            guard let line = try nextLine(bytes, limits.header, "too big bulk count string") else { return false }
            length = try parseLength(line)
        }
        guard let length, bytes.count - start >= length + 2 else { return false }
        bytesLeft -= length
        start += length + 2
        searched = start
        self.length = nil
        return true
    }

    private func parseLength(_ line: Slice<Bytes>) throws(ProtocolError) -> Int {
        guard line.first == UInt8(ascii: "$") else {
            throw ProtocolError(reason: "expected '$', got '\(Unicode.Scalar(line.first ?? 0x20))'")
        }
        guard let length = parseInteger(line.dropFirst()), 0...bytesLeft ~= length else {
            throw ProtocolError(reason: "invalid bulk length")
        }
        return length
    }

    /// The next line without its end; `nil` if the end has not arrived.
    private mutating func nextLine(
        _ bytes: Bytes, _ limit: Int, _ excess: String
    ) throws(ProtocolError) -> Slice<Bytes>? {
        guard let end = bytes[searched...].firstIndex(of: 0x0A) else {
            searched = bytes.count
            if searched - start > limit { throw ProtocolError(reason: excess) }
            return nil
        }
        if end - start > limit { throw ProtocolError(reason: excess) }
        let hasReturn = end > start && bytes[end - 1] == 0x0D
        let line = bytes[start..<(hasReturn ? end - 1 : end)]
        start = end + 1
        searched = start
        return line
    }
}

/// The integer that `digits` are; `nil` if they are none in the form in which the protocol writes integers.
func parseInteger(_ digits: some Collection<UInt8>) -> Int? {
    let isNegative = digits.first == UInt8(ascii: "-")
    let digits = isNegative ? digits.dropFirst() : digits[...]
    guard let first = digits.first, first != UInt8(ascii: "0") || (digits.count == 1 && !isNegative) else { return nil }
    var value = 0
    for digit in digits {
        guard UInt8(ascii: "0")...UInt8(ascii: "9") ~= digit else { return nil }
        let (product, overflow) = value.multipliedReportingOverflow(by: 10)
        let figure = Int(digit - UInt8(ascii: "0"))
        let (sum, carry) =
            isNegative ? product.subtractingReportingOverflow(figure) : product.addingReportingOverflow(figure)
        if overflow || carry { return nil }
        value = sum
    }
    return value
}
