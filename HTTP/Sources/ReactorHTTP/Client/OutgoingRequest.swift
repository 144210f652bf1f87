import Promises

/// A request of the client.
struct OutgoingRequest {
    let address: WebAddress
    let method: Method
    let headers: Headers
    let body: [UInt8]?

    init(_ address: WebAddress, _ method: Method, _ headers: Headers, _ body: [UInt8]?) throws(FetchError) {
        guard !method.name.isEmpty, method.name.utf8.allSatisfy(isTokenByte), method != "CONNECT" else {
            throw .badRequest("the method '\(method)'")
        }
        if headers.has("upgrade") || headers.has("expect") { throw .badRequest("with Upgrade or Expect") }
        self.address = address
        self.method = method
        self.headers = headers
        self.body = body
    }

    func write(to output: inout ByteWriter) {
        output.append(method.name)
        output.append(" ")
        output.append(address.target)
        output.append(" HTTP/1.1\r\nHost: ")
        output.append(address.authority)
        output.append("\r\n")
        output.append(headers, without: Self.ownFields)
        if let body {
            output.append(contentLength: body.count)
            if body.count <= 16_384 { output.append(body) }
        } else if method == .post || method == .put || method == .patch {
            // RFC 9110, section 8.6.
            output.append(contentLength: 0)
        } else {
            output.append("\r\n")
        }
    }

    /// Those that the client writes itself, and what is for a proxy, which no server must see.
    private static var ownFields: [StaticString] {
        ["host", "content-length", "transfer-encoding", "connection", "proxy-authorization"]
    }

    /// The request that a redirect asks for; `nil` if the response is none: RFC 9110, section 15.4.
    func redirected(by response: Fetched) throws(FetchError) -> OutgoingRequest? {
        guard let location = response.headers["location"] else { return nil }
        let becomesGet: Bool
        switch response.status.code {
        case 301, 302: becomesGet = method == .post
        case 303: becomesGet = method != .head
        case 307, 308: becomesGet = false
        default: return nil
        }
        let next = try address.resolve(location)
        var headers = headers
        if !next.hasOrigin(of: address) {
            headers["authorization"] = nil
            headers["cookie"] = nil
        }
        if !becomesGet { return try OutgoingRequest(next, method, headers, body) }
        for name in ["content-type", "content-encoding", "content-language", "content-location"] { headers[name] = nil }
        return try OutgoingRequest(next, .get, headers, nil)
    }
}
