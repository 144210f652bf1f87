/// A request: the name of a command and its arguments. Never empty.
typealias Request = [[UInt8]]

/// The client does not speak the protocol. It receives the reason, and its connection is closed.
struct ProtocolError: Error { let reason: String }

/// Decodes the requests of one connection, however they are split: arrays of bulk strings, and inline commands.
struct RequestDecoder {
    private let limits: Limits
    /// Bytes that have been received; those before `start` have been decoded.
    private var input: [UInt8] = []
    private var start = 0
    /// Before this index there is no end of the line that begins at `start`.
    private var searched = 0
    /// The words of the current request that have arrived, and the number of those that have not.
    private var words: Request = []
    private var missing = 0
    /// The length of the current word, once its header has been decoded.
    private var length: Int?
    /// Bytes that the rest of the current request may have.
    private var bytesLeft = 0

    init(_ limits: Limits) { self.limits = limits }

    /// Whether the client has begun a request that it has not ended.
    var isInsideRequest: Bool { missing > 0 || !input.isEmpty }

    mutating func append(_ bytes: [UInt8]) {
        if input.isEmpty {
            input = bytes
        } else {
            input += bytes
        }
    }

    /// Forgets what has been decoded. An idle client therefore costs no memory.
    private mutating func dropDecoded() {
        if start == input.count { input = [] } else { input.removeFirst(start) }
        searched -= start
        start = 0
    }

    /// The next request that is not empty; `nil` if more bytes are needed.
    mutating func next() throws(ProtocolError) -> Request? {
        if let request = try decode() { return request }
        dropDecoded()
        return nil
    }

    private mutating func decode() throws(ProtocolError) -> Request? {
        while missing == 0 {
            guard let line = try nextLine(limits.line, "too big inline request") else { return nil }
            guard line.first == UInt8(ascii: "*") else {
                let words = inlineWords(line)
                if words.isEmpty { continue }
                return words
            }
            guard let count = parseInteger(line.dropFirst()), count <= limits.words else {
                throw ProtocolError(reason: "invalid multibulk length")
            }
            missing = max(count, 0)
            bytesLeft = limits.request
        }
        while missing > 0 {
            guard let word = try nextWord() else { return nil }
            words.append(word)
            missing -= 1
        }
        var request: Request = []
        swap(&request, &words)
        return request
    }

    private mutating func nextWord() throws(ProtocolError) -> [UInt8]? {
        if length == nil {
            guard let line = try nextLine(limits.header, "too big bulk count string") else { return nil }
            length = try parseLength(line)
        }
        guard let length, input.count - start >= length + 2 else { return nil }
        let word = Array(input[start..<start + length])
        bytesLeft -= length
        start += length + 2
        searched = start
        self.length = nil
        return word
    }

    private func parseLength(_ line: ArraySlice<UInt8>) throws(ProtocolError) -> Int {
        guard line.first == UInt8(ascii: "$") else {
            throw ProtocolError(reason: "expected '$', got '\(Unicode.Scalar(line.first ?? 0x20))'")
        }
        guard let length = parseInteger(line.dropFirst()), 0...bytesLeft ~= length else {
            throw ProtocolError(reason: "invalid bulk length")
        }
        return length
    }

    /// The next line without its end; `nil` if the end has not arrived.
    private mutating func nextLine(_ limit: Int, _ excess: String) throws(ProtocolError) -> ArraySlice<UInt8>? {
        guard let end = input[searched...].firstIndex(of: 0x0A) else {
            searched = input.count
            if searched - start > limit { throw ProtocolError(reason: excess) }
            return nil
        }
        let line = input[start..<end]
        if line.count > limit { throw ProtocolError(reason: excess) }
        start = end + 1
        searched = start
        return line.last == 0x0D ? line.dropLast() : line
    }

    /// What a client types: words with blanks between them. There are no quotes.
    private func inlineWords(_ line: ArraySlice<UInt8>) -> Request {
        line.split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }.map(Array.init)
    }
}

/// The integer that `digits` are; `nil` if they are none in the form in which the protocol writes integers.
func parseInteger(_ digits: ArraySlice<UInt8>) -> Int? {
    let isNegative = digits.first == UInt8(ascii: "-")
    let digits = isNegative ? digits.dropFirst() : digits
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
