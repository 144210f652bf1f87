/// A body's delimitation: RFC 9112, section 6.3.
enum Framing: Equatable {
    case none
    /// At least one byte.
    case length(Int)
    case chunked
    /// Until the connection's end; responses only.
    case untilEnd
}

/// The fields about the message as a whole, and the rules against messages that recipients would delimit differently.
struct HeadFields {
    private var count = 0
    private(set) var hasHost = false
    private(set) var contentLength: Int?
    /// True when the transfer codings end with `chunked`.
    private(set) var isChunked = false
    private(set) var hasTransferEncoding = false
    private(set) var isClosing = false
    private(set) var isKeptAlive = false
    private(set) var expectsContinue = false
    /// The reason why a response's body cannot be delimited. Irrelevant without a body.
    private(set) var fault: Fault?

    /// True when a response has a field in a form that only a user agent accepts: see `Bytes.normalized`.
    var isIrregular = false

    /// The defect of a field that delimits a body.
    enum Fault {
        case emptyLength, noNumber, twoLengths, tab, emptyCoding, notLast, unknownCoding

        var error: HTTPError {
            switch self {
            case .emptyLength: .bad("an empty Content-Length")
            case .noNumber: .bad("a Content-Length that is not a number")
            case .twoLengths: .bad("two lengths")
            case .tab: .bad("a tab in Transfer-Encoding")
            case .emptyCoding, .notLast: .bad("chunked is not the last transfer coding")
            case .unknownCoding: HTTPError(Status(501), "a transfer coding")
            }
        }
    }

    /// Validates a field's line. Refuses a blank before the colon, and a leading blank, which used to continue the
    /// previous line: RFC 9112, sections 5.1 and 5.2.
    /// - Returns: the name's length in bytes.
    @inline(__always)
    static func nameLength(_ line: Bytes) throws(HTTPError) -> Int {
        var colon = line.lengthOfName
        while colon < line.count, isTokenByte(line[colon]) { colon += 1 }
        guard colon > 0, colon < line.count, line[colon] == UInt8(ascii: ":") else {
            throw .bad("a line that is not a field")
        }
        // Checks the name too, whose bytes a value allows: with it, most lines are long enough to test eight bytes at a
        // time.
        guard line.isValue else { throw .bad("a control character in a field") }
        return colon
    }

    /// - Parameter isRequest: true to evaluate request fields.
    @inline(__always)
    mutating func add(_ line: Bytes, limit: Int, isRequest: Bool) throws(HTTPError) {
        count += 1
        if count > limit { throw HTTPError(Status(431), "more than \(limit) fields") }
        let length = try Self.nameLength(line)
        // The name's length and first letter distinguish most fields.
        switch (length, line[0] | 0x20) {
        case (4, UInt8(ascii: "h")), (6, UInt8(ascii: "e")):
            if isRequest { try addOfRequest(line.slice(0..<length), line.slice(length + 1..<line.count).trimmed) }
        case (10, UInt8(ascii: "c")), (14, UInt8(ascii: "c")), (17, UInt8(ascii: "t")):
            guard let found = add(line.slice(0..<length), line.slice(length + 1..<line.count)) else { return }
            if isRequest { throw found.error }
            fault = fault ?? found
        default: break
        }
    }

    private mutating func addOfRequest(_ name: Bytes, _ value: Bytes) throws(HTTPError) {
        if name.isEqual(ignoringCase: "host") {
            guard !hasHost, Self.isHost(value) else { throw .bad(hasHost ? "two Host fields" : "no host") }
            hasHost = true
        } else if name.isEqual(ignoringCase: "expect") {
            guard value.isEqual(ignoringCase: "100-continue") else {
                throw HTTPError(Status(417), "an expectation other than 100-continue")
            }
            expectsContinue = true
        }
    }

    /// - Parameter value: the untrimmed value.
    private mutating func add(_ name: Bytes, _ value: Bytes) -> Fault? {
        if name.isEqual(ignoringCase: "connection") {
            value.forEachElement { option in
                if option.isEqual(ignoringCase: "close") { isClosing = true }
                if option.isEqual(ignoringCase: "keep-alive") { isKeptAlive = true }
            }
        } else if name.isEqual(ignoringCase: "content-length") {
            return addContentLength(value.trimmed)
        } else if name.isEqual(ignoringCase: "transfer-encoding") {
            return addTransferEncoding(value)
        }
        return nil
    }

    /// True when `value` is a name, an IPv4 address or a bracketed IPv6 address, with or without a port.
    static func isHost(_ value: Bytes) -> Bool {
        var end = 0
        if value.first == UInt8(ascii: "[") {
            guard let bracket = value.position(of: UInt8(ascii: "]")), bracket > 1,
                value.slice(1..<bracket).allSatisfy(isAddressByte)
            else { return false }
            end = bracket + 1
        } else {
            end = value.lengthOfDomain
            while end < value.count, isHostByte(value[end]) { end += 1 }
        }
        var portEnd = end + 1
        while portEnd < value.count, isDigit(value[portEnd]) { portEnd += 1 }
        return end > 0 && (end == value.count || value[end] == UInt8(ascii: ":") && portEnd == value.count)
    }

    /// Accepts digits in a single field: no sign, no list.
    private mutating func addContentLength(_ value: Bytes) -> Fault? {
        if value.isEmpty { return .emptyLength }
        var length = 0
        for digit in value {
            guard isDigit(digit) else { return .noNumber }
            // A length above any limit stays above it.
            length = min(length, .max / 16) * 10 + Int(digit - UInt8(ascii: "0"))
        }
        if contentLength != nil { return .twoLengths }
        contentLength = length
        return nil
    }

    /// Accepts only `chunked`, once and last. Refuses empty elements, since some recipients see no coding in `,
    /// chunked`, and tabs, which some do not treat as blanks.
    private mutating func addTransferEncoding(_ value: Bytes) -> Fault? {
        hasTransferEncoding = true
        var fault: Fault?
        if value.position(of: 0x09) != nil { fault = .tab }
        value.forEachElement { coding in
            if fault == nil && coding.isEmpty { fault = .emptyCoding }
            if fault == nil && isChunked { fault = .notLast }
            isChunked = coding.isEqual(ignoringCase: "chunked")
            if fault == nil && !isChunked { fault = .unknownCoding }
        }
        return fault
    }

    /// Determines a request body's framing. Rejects everything that a server "ought to" or "may" reject: RFC 9112,
    /// section 6.1.
    func framing(isHTTP10: Bool) throws(HTTPError) -> Framing {
        if hasTransferEncoding {
            guard isChunked, contentLength == nil, !isHTTP10 else { throw .bad("a length beside chunks") }
            return .chunked
        }
        if let contentLength, contentLength > 0 { return .length(contentLength) }
        return .none
    }

    /// Determines a response body's framing: RFC 9112, section 6.3.
    func framingOfResponse(isHTTP10: Bool) throws(HTTPError) -> Framing {
        // Rule 4. The program can see the names of other codings, and decode them.
        let isOpen = hasTransferEncoding && !isChunked && contentLength == nil && !isHTTP10
        if isOpen, fault == .notLast || fault == .unknownCoding { return .untilEnd }
        if let fault { throw fault.error }
        return !hasTransferEncoding && contentLength == nil ? .untilEnd : try framing(isHTTP10: isHTTP10)
    }

    func keepsAlive(isHTTP10: Bool) -> Bool { !isClosing && (isKeptAlive || !isHTTP10) }
}
