import Promises

/// The head of a response: RFC 9112, section 4.
struct ResponseHead {
    var status: Status
    var headers: Headers
    var framing: Framing
    /// Whether the connection may be used for another request.
    var keepsAlive: Bool
}

/// Decodes the head of the final response to a request, as strictly as a server does those of requests. Others, such as `103
/// Early Hints`, precede it: all of them count for the limit of a head, and for its time.
final class ResponseParser: FrameDecoder {
    private let maxHead: Int
    private let maxFields: Int
    /// Whether the response has no body because of the request's method.
    private let isToHead: Bool
    private var lines = HeadLines()
    private var fields = HeadFields()
    private var start: (status: Status, isHTTP10: Bool, end: Int)?

    init(maxHead: Int, maxFields: Int, isToHead: Bool) {
        (self.maxHead, self.maxFields, self.isToHead) = (maxHead, maxFields, isToHead)
    }

    func decode(_ bytes: RawSpan) throws -> DecodedFrame<ResponseHead> {
        // The bytes are lent for the call, and nothing keeps the pointer.
        try bytes.withUnsafeBytes { bytes throws(HTTPError) in try decode(bytes) }
    }

    private func decode(_ bytes: Bytes) throws(HTTPError) -> DecodedFrame<ResponseHead> {
        while let line = try lines.next(in: bytes) {
            try checkLength(lines.start)
            if let start {
                if !line.isEmpty {
                    try fields.add(line, limit: maxFields, isRequest: false)
                    continue
                }
                if start.status.code < 200 {
                    (self.start, fields) = (nil, HeadFields())
                    continue
                }
                var headers = Headers()
                headers.replace(with: bytes.slice(start.end..<lines.start - 2), from: 0)
                let head = ResponseHead(
                    status: start.status, headers: headers, framing: try framing(start.status, start.isHTTP10),
                    keepsAlive: fields.keepsAlive(isHTTP10: start.isHTTP10))
                return .frame(head, consumed: lines.start)
            }
            start = try decodeFirst(line, end: lines.start)
        }
        try checkLength(bytes.count)
        return .incomplete(missing: 1)
    }

    private func checkLength(_ count: Int) throws(HTTPError) {
        if count > maxHead { throw HTTPError(Status(502), "a head of more than \(maxHead) bytes") }
    }

    /// `HTTP/1.1 200 reason`, where the reason, and the space before it, may be missing.
    private func decodeFirst(_ line: Bytes, end: Int) throws(HTTPError) -> (Status, Bool, Int) {
        guard line.count >= 12, line[8] == 0x20, line.count == 12 || line[12] == 0x20, line.isValue else {
            throw .bad("no response of HTTP/1.1")
        }
        let isHTTP10 = try RequestParser.RequestLine.isHTTP10(line.slice(0..<8))
        var code = 0
        for digit in line.slice(9..<12) {
            guard isDigit(digit) else { throw .bad("a status that is not a number") }
            code = code * 10 + Int(digit - UInt8(ascii: "0"))
        }
        guard code >= 100, code != 101 else { throw .bad("the status \(code), which nobody has asked for") }
        return (Status(code), isHTTP10, end)
    }

    /// RFC 9112, section 6.3.
    private func framing(_ status: Status, _ isHTTP10: Bool) throws(HTTPError) -> Framing {
        let framing = try fields.framing(isHTTP10: isHTTP10)
        if isToHead || status.hasNoBody { return .none }
        if framing == .none, fields.contentLength == nil { return .untilEnd }
        return framing
    }
}
