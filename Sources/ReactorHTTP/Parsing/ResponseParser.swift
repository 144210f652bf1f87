import Promises
import ReactorIO

/// A response's head: RFC 9112, section 4.
struct ResponseHead {
    var status: Status
    var headers: Headers
    var framing: Framing
    var keepsAlive: Bool
}

/// Decodes the final response's head as strictly as a server decodes requests, except where a user agent must be
/// lenient. Interim responses, such as `103 Early Hints`, count towards the same size and time limits.
final class ResponseParser: FrameDecoder {
    /// The status, whether the server speaks HTTP/1.0, and the fields' offset.
    private typealias StatusLine = (status: Status, isHTTP10: Bool, end: Int)

    // `@exclusivity(unchecked)`: used on one thread, and a decoder never calls back.
    @exclusivity(unchecked) private var parser: HeadParser<StatusLine>
    private let asked: Asked

    /// The request's kind, which decides the response's meaning.
    enum Asked {
        case forContent
        /// HEAD: the response has no body.
        case forHead
        /// An upgrade: 101 is valid.
        case forUpgrade
        /// CONNECT: a success has no body, whatever its fields.
        case forTunnel
    }

    init(maxHead: Int, maxFields: Int, _ asked: Asked = .forContent) {
        parser = HeadParser(maxHead: maxHead, maxFields: maxFields)
        self.asked = asked
    }

    func decode(_ bytes: RawSpan) throws -> DecodedFrame<ResponseHead> {
        // The bytes are lent for the call, and nothing keeps the pointer.
        try bytes.withUnsafeBytes { bytes throws(HTTPError) in
            try parser.decode(bytes, isRequest: false, parse: statusLine) { line, fields, head throws(HTTPError) in
                if line.status.code < 200, line.status.code != 101 { return nil }
                var headers = Headers()
                let lines = head.slice(line.end..<head.count - 2)
                if fields.isIrregular {
                    lines.normalized.withUnsafeBytes { headers.replace(with: $0, from: 0) }
                } else {
                    headers.replace(with: lines, from: 0)
                }
                // Without a body, the fields describe another response: RFC 9112, section 6.3.
                let isWithoutBody = asked == .forHead || asked == .forTunnel && line.status.isSuccess
                let hasBody = !isWithoutBody && !line.status.hasNoBody
                return ResponseHead(
                    status: line.status, headers: headers,
                    framing: hasBody ? try fields.framingOfResponse(isHTTP10: line.isHTTP10) : .none,
                    // A server that writes faulty fields may send a body anyway.
                    keepsAlive: fields.fault == nil && fields.keepsAlive(isHTTP10: line.isHTTP10))
            }
        }
    }

    /// Parses `HTTP/1.1 200 reason`, with the reason and its space optional.
    private func statusLine(_ line: Bytes, at position: Int) throws(HTTPError) -> StatusLine? {
        guard line.count >= 12, line[8] == 0x20, line.count == 12 || line[12] == 0x20, line.isValue else {
            throw .bad("no response of HTTP/1.1")
        }
        let isHTTP10 = try RequestLine.isHTTP10(line.slice(0..<8))
        var code = 0
        for digit in line.slice(9..<12) {
            guard isDigit(digit) else { throw .bad("a status that is not a number") }
            code = code * 10 + Int(digit - UInt8(ascii: "0"))
        }
        guard code >= 100, code != 101 || asked == .forUpgrade && !isHTTP10 else {
            throw .bad("the status \(code), which nobody has asked for")
        }
        return (Status(code), isHTTP10, position + line.count + 2)
    }
}
