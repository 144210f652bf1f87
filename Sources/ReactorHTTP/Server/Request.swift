import Promises
import ReactorIO

/// A request's head, and its body, read on demand.
///
/// Use it only on its loop's thread. After the response, its memory is reused for the loop's next request, unless the
/// program still retains the request.
public struct Request {
    // Not public, because a weak reference would find the loop's next request here.
    let storage: RequestStorage

    /// The method.
    public var method: Method { storage.method }
    /// The fields of the head.
    public var headers: Headers { storage.headers }
    package var isHTTP10: Bool { storage.isHTTP10 }
    /// The request's connection, for the peer's address, the TLS handshake's result, and `cancelWhenPeerGone`. Do not
    /// read from it or write to it. `nil` once the response has been sent.
    public var connection: Connection? { storage.connection }

    /// The target as sent: `/path?query`, `http://host/path?query` or `*`.
    public var target: String { storage.text(storage.target) }

    /// The target's path as sent, without its query; `/` if empty. Escapes such as `%20` stay.
    public var path: String { storage.path.isEmpty ? "/" : storage.text(storage.path) }

    /// The target's part after `?`, if any. Escapes stay.
    public var query: String? {
        let (end, targetEnd) = (storage.path.upperBound, storage.target.upperBound)
        return end < targetEnd ? storage.text(end + 1..<targetEnd) : nil
    }

    /// The requested host, with any port that the client named: `example.org:8080`. A host in the target, as in
    /// `http://host/path`, replaces the field `Host`: RFC 9112, section 3.2.2. `nil` for an HTTP/1.0 client that names
    /// none.
    public var host: String? { headers["host"] }

    /// The body. A read sends `100 Continue` if the client waits for it and the response has not begun.
    public var body: Body { storage.body }
}

extension Request: CustomStringConvertible, CustomReflectable {
    /// `GET /path?query`.
    public var description: String { "\(method) \(target)" }
    /// The head's parts. Reflection must not reach `storage`; see there.
    public var customMirror: Mirror {
        Mirror(self, children: ["method": method, "target": target, "headers": headers], displayStyle: .struct)
    }
}

final class RequestStorage {
    // `@exclusivity(unchecked)`: used on one thread, and no field changes during calls that could call back.
    @exclusivity(unchecked) private(set) var method = Method.get
    @exclusivity(unchecked) private(set) var headers = Headers()
    @exclusivity(unchecked) private(set) var isHTTP10 = false
    /// The ranges of the target, and of its path, in the head.
    @exclusivity(unchecked) private(set) var target = 0..<0
    @exclusivity(unchecked) private(set) var path = 0..<0
    @exclusivity(unchecked) private(set) var framing = Framing.none
    @exclusivity(unchecked) private(set) var keepsAlive = true
    @exclusivity(unchecked) private var expectsContinue = false
    @exclusivity(unchecked) var usedBody: Body?
    @exclusivity(unchecked) var notes: RequestNotes?
    /// The connection, while the handler may read the body.
    @exclusivity(unchecked) var connection: Connection?
    /// The limits, and the receiver of errors. Kept between requests, which saves reference counting.
    @exclusivity(unchecked) var service: HTTPService?
    /// The status of a partly sent response, after which no other can follow.
    @exclusivity(unchecked) private(set) var begunStatus: Status?
    /// The time when the head was complete, if requests are logged.
    @exclusivity(unchecked) var began: ContinuousClock.Instant?

    /// The count of the head's memory while an answer is pending.
    private var keptHead: KeptBytes?

    /// Counts the head's memory, because the head outlives the call that delivered it.
    func keepHead(of connection: Connection) {
        if keptHead == nil { keptHead = KeptBytes(headers.lines.capacity, of: connection) }
    }

    func text(_ range: Range<Int>) -> String { headers.lines.withUnsafeBytes { $0.slice(range).text } }

    var body: Body {
        if let usedBody { return usedBody }
        let body = makeBody()
        usedBody = body
        return body
    }

    private func makeBody() -> Body {
        // A handler that outlives its connection has no service.
        let limit = service?.options.maxBody ?? HTTPOptions().maxBody
        let maxHead = service?.options.maxHead ?? HTTPOptions().maxHead
        let body = Body(framing, of: connection, limit: limit, maxHead: maxHead)
        if expectsContinue {
            body.beforeFirstRead = { connection in
                // A client that already sends the body does not wait.
                connection.bufferedByteCount == 0 ? connection.write("HTTP/1.1 100 Continue\r\n\r\n") : .value
            }
        }
        return body
    }

    /// True when the client still waits for `100 Continue`, and so may never send the body.
    var awaitsContinue: Bool { expectsContinue && (usedBody == nil || usedBody?.beforeFirstRead != nil) }

    /// Suppresses `100 Continue`, which would now land inside the response.
    func responseBegins(_ status: Status) {
        begunStatus = status
        if !expectsContinue { return }
        expectsContinue = false
        usedBody?.beforeFirstRead = nil
    }

    func begin(_ line: RequestLine, _ fields: HeadFields, _ bytes: Bytes) throws(HTTPError) {
        guard fields.hasHost || line.isHTTP10 else { throw .bad("no Host field") }
        framing = try fields.framing(isHTTP10: line.isHTTP10)
        if notes != nil { notes = nil }
        method = Method(bytes.slice(line.method))
        isHTTP10 = line.isHTTP10
        (target, path) = (line.target, line.path)
        headers.replace(with: bytes.slice(0..<bytes.count - 2), from: line.end)
        if let host = line.host(in: bytes) { headers["Host"] = host.text }
        keepsAlive = fields.keepsAlive(isHTTP10: line.isHTTP10)
        expectsContinue = fields.expectsContinue && !line.isHTTP10 && framing != .none
    }

    /// Ends reading of the body, since the response has been sent.
    func end() {
        connection = nil
        keptHead = nil
        begunStatus = nil
        usedBody.take()?.end()
    }
}
