import Promises

/// A request as a handler gets it: its head, and its body, which is read on demand.
///
/// A request belongs to the thread of its loop. Its memory serves the next request of the loop when the response has been
/// sent, unless the program still has it: keep it as long as you need it.
public final class Request {
    /// The method.
    @exclusivity(unchecked) public private(set) var method = Method.get
    /// The fields of the head.
    @exclusivity(unchecked) public private(set) var headers = Headers()
    /// Whether the client speaks HTTP/1.0.
    @exclusivity(unchecked) public private(set) var isHTTP10 = false

    // `@exclusivity(unchecked)`: one thread, and no field is being changed while code is called that could call back.
    /// Where the target, and the path in it, are in the head.
    @exclusivity(unchecked) private var targetRange = 0..<0
    @exclusivity(unchecked) private var pathRange = 0..<0
    @exclusivity(unchecked) private(set) var framing = Framing.none
    /// Whether the client wants to send more requests on this connection.
    @exclusivity(unchecked) private(set) var keepsAlive = true
    /// Whether the client waits for `100 Continue` before it sends the body.
    @exclusivity(unchecked) private(set) var expectsContinue = false
    @exclusivity(unchecked) private var madeBody: Body?
    /// The connection of the request: for its peer's address, what TLS has agreed on, and to cancel work by
    /// `cancelWhenPeerGone`. Do not read or write it. `nil` once the response has been sent.
    @exclusivity(unchecked) public private(set) var connection: Connection?
    /// How many bytes the body, and its trailers, may have.
    @exclusivity(unchecked) private var limits = (body: 0, trailers: 0)

    init() {}

    /// The target as it was sent: `/path?query`, `http://host/path?query` or `*`.
    public var target: String { text(targetRange) }

    /// The path of the target, as it was sent, without its query: `/` if it is empty. Escapes such as `%20` stay.
    public var path: String { pathRange.isEmpty ? "/" : text(pathRange) }

    /// What follows the `?` of the target; `nil` without one. Escapes stay.
    public var query: String? {
        guard pathRange.upperBound < targetRange.upperBound else { return nil }
        return text(pathRange.upperBound + 1..<targetRange.upperBound)
    }

    private func text(_ range: Range<Int>) -> String {
        headers.lines.withUnsafeBytes { String(decoding: $0.slice(range), as: UTF8.self) }
    }

    /// The body. Reading it sends `100 Continue` if the client waits for that.
    public var body: Body {
        if let madeBody { return madeBody }
        let body = makeBody()
        madeBody = body
        return body
    }

    private func makeBody() -> Body {
        guard let connection else { return Body(refusing: framing) }
        // A client that sends the body already does not wait for this.
        let sendContinue = { () -> Promise<Void> in
            connection.bufferedByteCount == 0 ? connection.write("HTTP/1.1 100 Continue\r\n\r\n") : .value
        }
        return Body(
            framing, of: connection, limit: limits.body, maxHead: limits.trailers,
            beforeFirstRead: expectsContinue ? sendContinue : nil)
    }

    /// The body, if the handler has asked for it.
    var usedBody: Body? { madeBody }

    /// Takes a head that is complete.
    /// - Parameter bytes: all of it.
    func begin(_ line: RequestParser.RequestLine, _ fields: HeadFields, _ bytes: Bytes) throws(HTTPError) {
        guard fields.hasHost || line.isHTTP10 else { throw .bad("no Host field") }
        framing = try fields.framing(isHTTP10: line.isHTTP10)
        method = Method(bytes.slice(line.method))
        isHTTP10 = line.isHTTP10
        targetRange = line.target
        pathRange = line.path
        headers.replace(with: bytes.slice(0..<bytes.count - 2), from: line.end)
        keepsAlive = fields.keepsAlive(isHTTP10: line.isHTTP10)
        expectsContinue = fields.expectsContinue && !line.isHTTP10 && framing != .none
    }

    /// The handler may have it from now on, and its body is read from `connection`.
    func handOut(on connection: Connection, _ options: HTTPOptions) {
        self.connection = connection
        limits = (options.maxBody, options.maxHead)
    }

    /// The response has been sent: the body can no longer be read.
    func end() {
        connection = nil
        if let body = madeBody.take() { body.end() }
    }
}
