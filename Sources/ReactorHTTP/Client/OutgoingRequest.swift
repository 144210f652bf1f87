import Promises
import Reactor
import ReactorIO

/// A client's request. A class, since each step of a fetch would copy a struct.
final class OutgoingRequest {
    let address: WebAddress
    let method: Method
    let headers: Headers
    let body: RequestBody?
    /// True when the program sends `Connection: close`.
    let isClosing: Bool
    let deadline: LoopInstant?

    init(
        _ address: WebAddress, _ method: Method, _ headers: Headers, _ body: RequestBody?, deadline: LoopInstant? = nil
    ) throws(FetchError) {
        guard !method.name.isEmpty, method.name.utf8.allSatisfy(isTokenByte), method != "CONNECT" else {
            throw .badRequest("the method '\(method)'")
        }
        // RFC 9110, section 9.3.8.
        if body != nil, method == "TRACE" { throw .badRequest("TRACE with a body") }
        (self.address, self.method, self.headers, self.body) = (address, method, headers, body)
        self.deadline = deadline
        isClosing = !headers.isEmpty && headers.has("connection", listing: "close")
        if !headers.isEmpty { try Self.check(headers) }
    }

    private static func check(_ headers: Headers) throws(FetchError) {
        if headers.has("upgrade") || headers.has("expect") { throw .badRequest("with Upgrade or Expect") }
        let hosts = headers.all("host")
        if hosts.count > 1 { throw .badRequest("with two Host fields") }
        if var host = hosts.first, !host.withUTF8({ HeadFields.isHost(Bytes($0)) }) {
            throw .badRequest("with the Host '\(host)'")
        }
    }

    func isRepetition(of other: OutgoingRequest) -> Bool { method == other.method && address == other.address }

    var isRepeatable: Bool { method.isIdempotent && body?.isStream != true }

    /// - Parameters:
    ///   - proxy: the proxy that gets the request.
    ///   - userAgent: the line for a request without `User-Agent`.
    func writeHead(to output: inout ByteWriter, by proxy: Proxy?, userAgent: [UInt8]) {
        writeFields(to: &output, by: proxy, userAgent: userAgent)
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

    /// Writes the first line, and the fields that do not describe a body.
    func writeFields(to output: inout ByteWriter, by proxy: Proxy?, userAgent: [UInt8]) {
        output.append(method.name)
        output.append(" " as StaticString)
        output.append(proxy == nil ? address.target : address.text)
        output.append(" HTTP/1.1\r\nHost: " as StaticString)
        if !headers.isEmpty, let host = headers.bytes("host") {
            output.append(host)
        } else {
            output.append(address.authority)
        }
        output.append("\r\n" as StaticString)
        if headers.isEmpty || !headers.has("user-agent") { output.append(userAgent.span.bytes) }
        if isClosing { output.append("Connection: close\r\n" as StaticString) }
        if !headers.isEmpty { output.append(headers, without: Self.ownFields) }
        if let authorization = proxy?.authorization { output.append("Proxy-Authorization: \(authorization)\r\n") }
    }

    /// Fields that the client writes itself, and proxy fields, which a server must not see.
    private static var ownFields: [StaticString] {
        ["host", "content-length", "transfer-encoding", "connection", "proxy-authorization"]
    }

    /// Returns the request that follows a redirect; `nil` if the response is none, or if it needs a streamed body
    /// again: RFC 9110, section 15.4.
    func redirected(by response: Fetched) throws(FetchError) -> OutgoingRequest? {
        let becomesGet: Bool
        switch response.status.code {
        case 301, 302: becomesGet = method == .post
        case 303: becomesGet = method != .head
        case 307, 308: becomesGet = false
        default: return nil
        }
        guard let location = response.headers.bytes("location") else { return nil }
        if !becomesGet && body?.isStream == true { return nil }
        let next = try address.resolve(location)
        var lost = next.origin == address.origin ? [] : ["authorization", "cookie", "host"]
        if becomesGet { lost += ["content-type", "content-encoding", "content-language", "content-location"] }
        var headers = headers
        for name in lost { headers.remove(name) }
        return try OutgoingRequest(
            next, becomesGet ? .get : method, headers, becomesGet ? nil : body, deadline: deadline)
    }
}
