import Promises
import ReactorIO

extension Request {
    /// A request without client and connection, for tests that call a handler or a `Router`.
    ///
    /// ```swift
    /// let request = try Request(.post, "/notes?lang=en", headers: ["Accept": "text/plain"], body: .text("milk"))
    /// ```
    /// - Parameters:
    ///   - method: the method.
    ///   - target: the target.
    ///   - headers: the fields. `Host`, and the body's length and type, are added if missing.
    ///   - body: the body.
    /// - Throws: the `HTTPError` with which a server would refuse this request.
    public init(
        _ method: Method = .get, _ target: String, headers: Headers = Headers(), body: RequestBody? = nil
    ) throws(HTTPError) {
        guard target.utf8.allSatisfy(isVisible), method.name.utf8.allSatisfy(isTokenByte) else {
            throw .bad("a method or a target with other bytes than those of a URI")
        }
        var output = ByteWriter()
        output.append("\(method) \(target) HTTP/1.1\r\n")
        if !headers.has("host") { output.append("Host: localhost\r\n" as StaticString) }
        if let type = body?.contentType, !headers.has("content-type") {
            output.append("Content-Type: ")
            output.append(value: type)
            output.append("\r\n" as StaticString)
        }
        output.append(headers, without: ["content-length", "transfer-encoding"])
        if let body { output.append(framing: body.content.length) } else { output.append("\r\n" as StaticString) }
        let storage = RequestStorage()
        let options = HTTPOptions()
        var parser = HeadParser<RequestLine>(maxHead: .max, maxFields: .max)
        // The bytes are lent for the call, and nothing keeps the pointer.
        let head = try output.bytes.span.bytes.withUnsafeBytes { bytes throws(HTTPError) in
            try parser.decode(bytes, isRequest: true) { line, position throws(HTTPError) in
                try RequestLine(line, at: position)
            } take: { line, fields, head throws(HTTPError) -> Void? in
                try storage.begin(line, fields, head)
            }
        }
        guard case .frame = head else { throw .bad("a head that does not end") }
        if let content = body?.content { storage.usedBody = Body(of: content, limit: options.maxBody) }
        self.init(storage: storage)
    }
}
