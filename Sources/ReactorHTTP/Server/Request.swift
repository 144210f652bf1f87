import Promises

/// A request as a handler gets it: its head, and its body, which is read on demand.
///
/// A request belongs to the thread of its loop. Its memory serves the next request of the loop when the response has been
/// sent, unless the program still has it: keep it as long as you need it.
public struct Request {
    // Not public, so that no weak reference to it can be made: it would find the next request there.
    let storage: RequestStorage

    /// The method.
    public var method: Method { storage.method }
    /// The fields of the head.
    public var headers: Headers { storage.headers }
    /// Whether the client speaks HTTP/1.0.
    public var isHTTP10: Bool { storage.isHTTP10 }
    /// The connection of the request: for its peer's address, what TLS has agreed on, and to cancel work by
    /// `cancelWhenPeerGone`. Do not read or write it. `nil` once the response has been sent.
    public var connection: Connection? { storage.connection }

    /// The target as it was sent: `/path?query`, `http://host/path?query` or `*`.
    public var target: String { storage.text(storage.target) }

    /// The path of the target, as it was sent, without its query: `/` if it is empty. Escapes such as `%20` stay.
    public var path: String { storage.path.isEmpty ? "/" : storage.text(storage.path) }

    /// What follows the `?` of the target; `nil` without one. Escapes stay.
    public var query: String? {
        let (end, targetEnd) = (storage.path.upperBound, storage.target.upperBound)
        return end < targetEnd ? storage.text(end + 1..<targetEnd) : nil
    }

    /// The host that is asked, with its port if the client has named one: `example.org:8080`. That of the target if it has one, as
    /// `http://host/path` does; otherwise the field `Host`, which is replaced by it: RFC 9112, section 3.2.2. `nil` for a client of
    /// HTTP/1.0 that names none.
    public var host: String? { headers["host"] }

    /// The body. Reading it sends `100 Continue` if the client waits for that and the response has not begun.
    public var body: Body { storage.body }
}

extension Request: CustomStringConvertible, CustomReflectable {
    /// `GET /path?query`.
    public var description: String { "\(method) \(target)" }
    /// The parts of the head. Reflection gives no access to the memory behind them, for which see `storage`.
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
    /// Where the target, and the path in it, are in the head.
    @exclusivity(unchecked) private(set) var target = 0..<0
    @exclusivity(unchecked) private(set) var path = 0..<0
    @exclusivity(unchecked) private(set) var framing = Framing.none
    /// Whether the client wants to send more requests on this connection.
    @exclusivity(unchecked) private(set) var keepsAlive = true
    /// Whether the client waits for `100 Continue` before it sends the body.
    @exclusivity(unchecked) private var expectsContinue = false
    /// The body, if the handler has asked for it.
    @exclusivity(unchecked) var usedBody: Body?
    /// The parameters of the path, if a `Router` has looked at it.
    @exclusivity(unchecked) var routing: Parameters?
    /// Present while the handler may read the body from it.
    @exclusivity(unchecked) var connection: Connection?
    /// How many bytes the body, and its trailers, may have.
    @exclusivity(unchecked) var limits = (body: 0, trailers: 0)
    /// That of a response that has been sent in part, so that no other one can be given.
    @exclusivity(unchecked) private(set) var begunStatus: Status?
    /// When the head was complete, if that is logged.
    @exclusivity(unchecked) var began: ContinuousClock.Instant?

    /// The memory of the head, while an answer takes its time.
    private var keptHead: KeptBytes?

    /// The head stays for longer than the call that has brought it.
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
        let body = Body(framing, of: connection, limit: limits.body, maxHead: limits.trailers)
        if expectsContinue {
            body.beforeFirstRead = { connection in
                // A client that sends the body already does not wait for this.
                connection.bufferedByteCount == 0 ? connection.write("HTTP/1.1 100 Continue\r\n\r\n") : .value
            }
        }
        return body
    }

    /// Whether the client has not been told to send the body, and may never do so.
    var awaitsContinue: Bool { expectsContinue && (usedBody == nil || usedBody?.beforeFirstRead != nil) }

    /// The client is no longer told to continue: that would stand inside of the response.
    func responseBegins(_ status: Status) {
        begunStatus = status
        if !expectsContinue { return }
        expectsContinue = false
        usedBody?.beforeFirstRead = nil
    }

    /// Takes a head that is complete.
    /// - Parameter bytes: all of it.
    func begin(_ line: RequestLine, _ fields: HeadFields, _ bytes: Bytes) throws(HTTPError) {
        guard fields.hasHost || line.isHTTP10 else { throw .bad("no Host field") }
        framing = try fields.framing(isHTTP10: line.isHTTP10)
        if routing != nil { routing = nil }
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
        usedBody.take()?.end()
    }
}
