/// The fields of a head, one after the other, and the rules against requests that two recipients would delimit differently.
struct HeadFields {
    private var count = 0
    private var hasHost = false
    private var contentLength: Int?
    /// The transfer codings end with `chunked`.
    private var isChunked = false
    private var hasTransferEncoding = false
    private var isClosing = false
    private var isKeptAlive = false
    private var expectsContinue = false

    /// Splits `name: value`. There is no blank before the colon, and a line that begins with a blank, which once continued
    /// the one before, is refused: RFC 9112, sections 5.1 and 5.2.
    static func split(_ line: Bytes) throws(Status) -> (name: Bytes, value: Bytes) {
        guard let colon = line.position(of: UInt8(ascii: ":")), colon > 0 else { throw .badRequest }
        let (name, value) = (line.slice(0..<colon), line.slice(colon + 1..<line.count))
        guard name.allSatisfy(isTokenByte), value.allSatisfy(isValueByte) else { throw .badRequest }
        return (name, value.trimmed)
    }

    mutating func add(_ line: Bytes) throws(Status) {
        count += 1
        if count > Limits.fields { throw .fieldsTooLarge }
        let (name, value) = try Self.split(line)
        // Most fields are told apart by the lengths of their names alone.
        switch name.count {
        case 4 where name.isEqual(ignoringCase: "host"): try addHost(value)
        case 6 where name.isEqual(ignoringCase: "expect"): try addExpectation(value)
        case 10 where name.isEqual(ignoringCase: "connection"): try addConnection(value)
        case 14 where name.isEqual(ignoringCase: "content-length"): try addContentLength(value)
        case 17 where name.isEqual(ignoringCase: "transfer-encoding"): try addTransferEncoding(value)
        default: break
        }
    }

    private mutating func addHost(_ value: Bytes) throws(Status) {
        guard !hasHost, Self.isHost(value) else { throw .badRequest }
        hasHost = true
    }

    /// Whether `value` is a name, an IPv4 address or an IPv6 address in brackets, with or without a port.
    private static func isHost(_ value: Bytes) -> Bool {
        var port = value.slice((value.position(of: UInt8(ascii: ":")) ?? value.count)..<value.count)
        var isName = value.slice(0..<value.count - port.count).allSatisfy(isHostByte)
        if value.first == UInt8(ascii: "["), let end = value.position(of: UInt8(ascii: "]")) {
            port = value.slice(end + 1..<value.count)
            isName = end > 1 && value.slice(1..<end).allSatisfy(isAddressByte)
        }
        return isName && (port.isEmpty || port[0] == UInt8(ascii: ":") && port.dropFirst().allSatisfy(isDigit))
    }

    private mutating func addExpectation(_ value: Bytes) throws(Status) {
        guard value.isEqual(ignoringCase: "100-continue") else { throw .expectationFailed }
        expectsContinue = true
    }

    private mutating func addConnection(_ value: Bytes) throws(Status) {
        try value.forEachElement { option in
            if option.isEqual(ignoringCase: "close") { isClosing = true }
            if option.isEqual(ignoringCase: "keep-alive") { isKeptAlive = true }
        }
    }

    /// Digits only, and each time the same number: no sign, no list.
    private mutating func addContentLength(_ value: Bytes) throws(Status) {
        guard !value.isEmpty else { throw .badRequest }
        var length = 0
        for digit in value {
            guard isDigit(digit) else { throw .badRequest }
            // A length that is too large for any limit stays so.
            length = min(length, .max / 16) * 10 + Int(digit - UInt8(ascii: "0"))
        }
        if let contentLength, contentLength != length { throw .badRequest }
        contentLength = length
    }

    /// `chunked` must be the last coding, once; the server knows no others. Empty elements, which other lists may have, are
    /// refused: some recipients see no coding in `, chunked`.
    private mutating func addTransferEncoding(_ value: Bytes) throws(Status) {
        hasTransferEncoding = true
        try value.forEachElement { coding throws(Status) in
            if isChunked || coding.isEmpty { throw .badRequest }
            guard coding.isEqual(ignoringCase: "chunked") else { throw .notImplemented }
            isChunked = true
        }
    }

    /// Completes a head whose request line is decoded, when all of its fields are.
    func complete(_ head: RequestHead) throws(Status) -> RequestHead {
        guard hasHost || head.isHTTP10 else { throw .badRequest }
        var head = head
        if hasTransferEncoding {
            guard isChunked, contentLength == nil, !head.isHTTP10 else { throw .badRequest }
            head.body = .chunked
        } else if let contentLength, contentLength > 0 {
            head.body = .length(contentLength)
        }
        if isClosing {
            head.keepsAlive = false
        } else if isKeptAlive {
            head.keepsAlive = true
        }
        head.expectsContinue = expectsContinue && !head.isHTTP10
        return head
    }
}
