import Promises
import Reactor

/// A request of the client.
struct OutgoingRequest {
    let address: WebAddress
    let method: Method
    let headers: Headers
    let body: RequestBody?
    /// Until when the response may be read.
    var deadline: LoopInstant?

    init(_ address: WebAddress, _ method: Method, _ headers: Headers, _ body: RequestBody?) throws(FetchError) {
        guard !method.name.isEmpty, method.name.utf8.allSatisfy(isTokenByte), method != "CONNECT" else {
            throw .badRequest("the method '\(method)'")
        }
        if headers.has("upgrade") || headers.has("expect") { throw .badRequest("with Upgrade or Expect") }
        (self.address, self.method, self.headers, self.body) = (address, method, headers, body)
    }

    /// Whether it may be made again.
    var isRepeatable: Bool { method.isIdempotent && body?.isStream != true }

    /// - Parameter proxy: the proxy that gets it.
    func writeHead(to output: inout ByteWriter, by proxy: Proxy?) {
        output.append(method.name)
        output.append(" " as StaticString)
        output.append(proxy == nil ? address.target : address.text)
        output.append(" HTTP/1.1\r\nHost: " as StaticString)
        output.append(address.authority)
        output.append("\r\n" as StaticString)
        output.append(headers, without: Self.ownFields)
        if let authorization = proxy?.authorization { output.append("Proxy-Authorization: \(authorization)\r\n") }
        if let type = body?.contentType, !headers.has("content-type") {
            output.append("Content-Type: " as StaticString)
            output.append(value: type)
            output.append("\r\n" as StaticString)
        }
        if let body {
            output.append(framing: body.content.length)
        } else if method == .post || method == .put || method == .patch {
            // RFC 9110, section 8.6.
            output.append(framing: 0)
        } else {
            output.append("\r\n" as StaticString)
        }
    }

    /// Those that the client writes itself, and what is for a proxy, which no server must see.
    private static var ownFields: [StaticString] {
        ["host", "content-length", "transfer-encoding", "connection", "proxy-authorization"]
    }

    /// The request that a redirect asks for; `nil` if the response is none, or its body cannot be sent again: RFC 9110,
    /// section 15.4.
    func redirected(by response: Fetched) throws(FetchError) -> OutgoingRequest? {
        guard let location = response.headers["location"] else { return nil }
        let becomesGet: Bool
        switch response.status.code {
        case 301, 302: becomesGet = method == .post
        case 303: becomesGet = method != .head
        case 307, 308: becomesGet = false
        default: return nil
        }
        if !becomesGet && body?.isStream == true { return nil }
        let next = try address.resolve(location)
        var lost = next.hasOrigin(of: address) ? [] : ["authorization", "cookie"]
        if becomesGet { lost += ["content-type", "content-encoding", "content-language", "content-location"] }
        var headers = headers
        for name in lost { headers.remove(name) }
        var request = try OutgoingRequest(next, becomesGet ? .get : method, headers, becomesGet ? nil : body)
        request.deadline = deadline
        return request
    }
}
