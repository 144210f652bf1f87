import Promises
import ReactorIO

/// A request: its head, and its body, which is read on demand.
///
/// A request belongs to the thread of its loop. After the response, its memory is reused for the next request of the
/// loop, unless the program still retains it: keep it as long as you need it.
public struct Request {
    // Not public, so that nobody can make a weak reference to it: it would find the next request there.
    let storage: RequestStorage

    /// The method.
    public var method: Method { storage.method }
    /// The fields of the head.
    public var headers: Headers { storage.headers }
    /// `true` if the client speaks HTTP/1.0.
    package var isHTTP10: Bool { storage.isHTTP10 }
    /// The connection of the request: for the peer's address, the result of the TLS handshake, and
    /// `cancelWhenPeerGone`. Do not read or write it. `nil` once the response has been sent.
    public var connection: Connection? { storage.connection }

    /// The target as sent: `/path?query`, `http://host/path?query` or `*`.
    public var target: String { storage.text(storage.target) }

    /// The path of the target as sent, without its query: `/` if it is empty. Escapes such as `%20` stay.
    public var path: String { storage.path.isEmpty ? "/" : storage.text(storage.path) }

    /// The part of the target after `?`; `nil` without one. Escapes stay.
    public var query: String? {
        let (end, targetEnd) = (storage.path.upperBound, storage.target.upperBound)
        return end < targetEnd ? storage.text(end + 1..<targetEnd) : nil
    }

    /// The requested host, with its port if the client has named one: `example.org:8080`. A host in the target, as in
    /// `http://host/path`, replaces the field `Host`: RFC 9112, section 3.2.2. `nil` for a client of HTTP/1.0 that
    /// names none.
    public var host: String? { headers["host"] }

    /// The body. Reading it sends `100 Continue` if the client waits for that and the response has not begun.
    public var body: Body { storage.body }
}

extension Request: CustomStringConvertible, CustomReflectable {
    /// `GET /path?query`.
    public var description: String { "\(method) \(target)" }
    /// The parts of the head. Reflection must not reach `storage`; see there.
    public var customMirror: Mirror {
        Mirror(self, children: ["method": method, "target": target, "headers": headers], displayStyle: .struct)
    }
}

/// The memory of a request.
final class RequestStorage {
    // `@exclusivity(unchecked)`: one thread, and no field is being changed while code is called that could call back.
    @exclusivity(unchecked) private(set) var method = Method.get
    @exclusivity(unchecked) private(set) var headers = Headers()
    @exclusivity(unchecked) private(set) var isHTTP10 = false
    /// The ranges of the target, and of the path in it, in the head.
    @exclusivity(unchecked) private(set) var target = 0..<0
    @exclusivity(unchecked) private(set) var path = 0..<0
    @exclusivity(unchecked) private(set) var framing = Framing.none
    /// Whether the client wants to send more requests on this connection.
    @exclusivity(unchecked) private(set) var keepsAlive = true
    /// Whether the client waits for `100 Continue` before it sends the body.
    @exclusivity(unchecked) private var expectsContinue = false
    /// The body, if the handler has asked for it.
    @exclusivity(unchecked) var usedBody: Body?
    @exclusivity(unchecked) var notes: RequestNotes?
    /// Set while the handler may read the body from it.
    @exclusivity(unchecked) var connection: Connection?
    /// The limits, and who gets the errors. Kept between requests, so that no reference is counted for each.
    @exclusivity(unchecked) var service: Service?
    /// The status of a response that has been sent in part, so that no other one can follow.
    @exclusivity(unchecked) private(set) var begunStatus: Status?
    /// The head of a response whose body is a stream, until it is sent.
    @exclusivity(unchecked) var unsentHead: (status: Status, bytes: [UInt8])?
    /// When the head was complete, if requests are logged.
    @exclusivity(unchecked) var began: ContinuousClock.Instant?

    /// Accounts for the memory of the head while an answer is pending.
    private var keptHead: KeptBytes?

    /// The head outlives the call that delivered it.
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
        // A handler that goes on behind its connection has no service any more.
        let limit = service?.options.maxBody ?? HTTPOptions().maxBody
        let maxHead = service?.options.maxHead ?? HTTPOptions().maxHead
        let body = Body(framing, of: connection, limit: limit, maxHead: maxHead)
        if expectsContinue {
            body.beforeFirstRead = { connection in
                // A client that already sends the body does not wait for this.
                connection.bufferedByteCount == 0 ? connection.write("HTTP/1.1 100 Continue\r\n\r\n") : .value
            }
        }
        return body
    }

    /// Whether the client still waits for `100 Continue`, and so may never send the body.
    var awaitsContinue: Bool { expectsContinue && (usedBody == nil || usedBody?.beforeFirstRead != nil) }

    /// `100 Continue` is no longer sent: it would land inside the response.
    func responseBegins(_ status: Status) {
        begunStatus = status
        if !expectsContinue { return }
        expectsContinue = false
        usedBody?.beforeFirstRead = nil
    }

    /// Takes over a complete head.
    /// - Parameter bytes: the whole head.
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

    /// The response has been sent: the body can no longer be read.
    func end() {
        connection = nil
        keptHead = nil
        begunStatus = nil
        unsentHead = nil
        usedBody.take()?.end()
    }
}
