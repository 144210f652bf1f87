import Promises

/// Decodes the head of one request: RFC 9112, sections 2 to 6.
struct RequestParser {
    private let maxHead: Int
    private let maxFields: Int
    private var lines = HeadLines()
    private var fields = HeadFields()
    /// Present once the first line has been decoded.
    private var requestLine: RequestLine?

    /// Positions are those in the bytes of the head.
    struct RequestLine {
        var method: Range<Int>
        var target: Range<Int>
        /// The target without its scheme, host and query.
        var path: Range<Int>
        var isHTTP10: Bool
        /// Where the fields begin.
        var end: Int
    }

    @inline(__always)
    init(maxHead: Int, maxFields: Int) { (self.maxHead, self.maxFields) = (maxHead, maxFields) }

    /// - Parameter take: gets the head when it is complete, with all of its bytes.
    @inline(__always)
    mutating func decode(
        _ bytes: Bytes, take: (RequestLine, HeadFields, Bytes) throws(HTTPError) -> Void
    ) throws(HTTPError) -> DecodedFrame<Void> {
        while let line = try lines.next(in: bytes) {
            try checkLength(lines.start - 2)
            if !line.isEmpty {
                if requestLine == nil {
                    requestLine = try RequestLine(line, at: lines.start - 2 - line.count)
                } else {
                    try fields.add(line, limit: maxFields, isRequest: true)
                }
            } else if let requestLine {
                let consumed = lines.start
                try take(requestLine, fields, bytes.slice(0..<consumed))
                return .frame((), consumed: consumed)
            }
            // Some clients send an empty line behind a body: RFC 9112, section 2.2.
        }
        if requestLine == nil && lines.start > 0 {
            try checkLength(lines.start)
            return .skipped(consumed: lines.skip())
        }
        try checkLength(bytes.count)
        return .incomplete(missing: 1)
    }

    /// Refuses a head with more bytes than allowed, whether they are one line or many.
    private func checkLength(_ count: Int) throws(HTTPError) {
        guard lines.skipped + count > maxHead else { return }
        throw HTTPError(Status(requestLine == nil ? 414 : 431), "a head of more than \(maxHead) bytes")
    }
}

extension RequestParser.RequestLine {
    /// Decodes `method SP target SP version`.
    /// - Parameter start: the position of the line.
    init(_ line: Bytes, at start: Int) throws(HTTPError) {
        guard let first = line.position(of: 0x20), let second = line.position(of: 0x20, from: first + 1) else {
            throw .bad("a request line without two spaces")
        }
        // First, since a client of another version means something else with the rest.
        isHTTP10 = try Self.isHTTP10(line.slice(second + 1..<line.count))
        guard first > 0, line.slice(0..<first).allSatisfy(isTokenByte) else { throw .bad("a method that is no token") }
        method = start..<start + first
        target = start + first + 1..<start + second
        let range = try Self.path(in: line.slice(first + 1..<second))
        path = target.lowerBound + range.lowerBound..<target.lowerBound + range.upperBound
        end = start + line.count + 2
    }

    /// `HTTP/1.0`, or `HTTP/1.` with any other digit, which is answered as HTTP/1.1.
    static func isHTTP10(_ version: Bytes) throws(HTTPError) -> Bool {
        // The usual one, compared as a word; the load lies within its eight bytes.
        if version.count == 8, UInt64(bigEndian: version.loadUnaligned(as: UInt64.self)) == 0x4854_5450_2F31_2E31 {
            return false
        }
        guard version.count == 8, version.slice(0..<5).isEqual(to: "HTTP/"), version[6] == UInt8(ascii: "."),
            isDigit(version[5]), isDigit(version[7])
        else { throw .bad("a version that is none of HTTP") }
        guard version[5] == UInt8(ascii: "1") else { throw HTTPError(Status(505)) }
        return version[7] == UInt8(ascii: "0")
    }

    /// The path of `/path?query`, `http://host/path?query` and `*`: RFC 9112, section 3.2. Any other form is for proxies.
    private static func path(in target: Bytes) throws(HTTPError) -> Range<Int> {
        var index = 0
        // A fragment is for the client.
        while index < target.count, isVisible(target[index]), target[index] != UInt8(ascii: "#") { index += 1 }
        guard let first = target.first, index == target.count else {
            throw .bad("a target with other bytes than those of a URI")
        }
        var start = 0
        if first != UInt8(ascii: "/"), first != UInt8(ascii: "*") || target.count > 1 {
            let isPlain = target.count > 7 && target.slice(0..<7).isEqual(ignoringCase: "http://")
            let isSecure = target.count > 8 && target.slice(0..<8).isEqual(ignoringCase: "https://")
            guard isPlain || isSecure else { throw .bad("a target that is neither a path nor a URI of HTTP") }
            start = isPlain ? 7 : 8
            let query = target.position(of: UInt8(ascii: "?"), from: start) ?? target.count
            let end = min(target.position(of: UInt8(ascii: "/"), from: start) ?? target.count, query)
            // Not empty, and without an account: RFC 9110, sections 4.2.1 and 4.2.4.
            guard HeadFields.isHost(target.slice(start..<end)) else { throw .bad("a target without a host") }
            start = end
        }
        let end = target.position(of: UInt8(ascii: "?"), from: start) ?? target.count
        return start..<end
    }
}
