import Promises
import ReactorIO

/// A handler's response.
///
/// ```swift
/// Response("Hello, world!\n")
/// Response(.notFound)
/// Response(json, type: "application/json", headers: ["Cache-Control": "no-store"])
/// Response.stream(type: "text/csv") { output in rows.forEach { output.write($0) } }
/// ```
///
/// The server writes `Date` and `Content-Type`, unless `headers` has them, and the fields that delimit the body. It
/// omits a program's `Content-Length` and `Transfer-Encoding`, except that a response to HEAD, which has no body, may
/// set `Content-Length`. The server merges options into `Connection`: `close` closes the connection after the response,
/// and a field `Upgrade` adds its option.
public struct Response {
    /// The status.
    public var status: Status
    /// Further fields.
    public var headers: Headers
    /// The default `Content-Type`.
    private(set) var ownType: String?
    var content: Content

    /// The field `Content-Type`, from `headers` or else the response's own type. Setting it replaces both; `nil` omits
    /// the field.
    public var contentType: String? {
        get { headers["content-type"] ?? ownType }
        set {
            headers.remove("content-type")
            ownType = newValue
        }
    }
}

// In an extension, since an initializer in the type would suppress the memberwise one and copy its result.
extension Response {
    /// A response with a text as UTF-8.
    public init(
        _ text: String, status: Status = .ok, type: String? = "text/plain; charset=utf-8", headers: Headers = Headers()
    ) { self.init(status, type, headers, .text(text)) }

    /// A response with these bytes.
    public init(
        _ bytes: [UInt8], status: Status = .ok, type: String? = "application/octet-stream", headers: Headers = Headers()
    ) { self.init(status, type, headers, .bytes(bytes)) }

    /// A response without a body.
    public init(_ status: Status, headers: Headers = Headers()) { self.init(status, nil, headers, .text("")) }

    /// A response that redirects the client.
    /// - Parameters:
    ///   - location: the field `Location`: an address or path. Blanks, control characters and non-ASCII are escaped,
    ///     like `%20`. All else is sent unchanged, so escape a user's text.
    ///   - status: 303 makes the client send GET to the new address; 307 and 308 keep the method.
    public static func redirect(to location: String, status: Status = Status(303)) -> Response {
        Response(status, headers: ["Location": location.utf8.allSatisfy(isVisible) ? location : escaped(location)])
    }

    /// A response whose body is written while it is being sent.
    ///
    /// `body` is called once, when the head can be sent, but not for HEAD. The response ends when the promise from
    /// `body` settles. If the promise is rejected, the connection closes, so the client sees an incomplete response.
    /// Before the first write, the client gets the error's status instead.
    /// - Parameters:
    ///   - status: the status.
    ///   - type: the field `Content-Type`, unless `headers` has one; `nil` for none.
    ///   - headers: the fields of the head.
    ///   - length: the body's length in bytes; `nil` for chunks.
    ///   - body: writes the body. After its first write, a client that waits for `100 Continue` does not get it.
    public static func stream(
        status: Status = .ok, type: String? = "application/octet-stream", headers: Headers = Headers(),
        length: Int? = nil, _ body: @escaping (BodyOutput) throws -> Promise<Void>
    ) -> Response { Response(status, type, headers, .stream(length: length, body)) }

    /// Answers `101 Switching Protocols`, and hands the connection over: RFC 9110, section 7.8.
    ///
    /// `body` first reads any bytes that the client sent after its request. HTTP's time limits no longer apply. The
    /// connection closes when the promise from `body` settles. `onError` gets the promise's error, except a
    /// `StreamError` or an error of the connection, which clients cause. The handler must check the request first:
    /// `Upgrade: protocol`, and the protocol's requirements. HTTP/1.0 has no upgrades: its client gets a 426 that names
    /// the protocol.
    /// - Parameters:
    ///   - protocol: the field `Upgrade`.
    ///   - headers: further fields.
    ///   - body: uses the connection from then on.
    public static func upgrade(
        to protocol: String, headers: Headers = Headers(), _ body: @escaping (Connection) throws -> Promise<Void>
    ) -> Response {
        let content = Content.upgrade(`protocol`) { connection in
            try body(connection).recover(only: StreamError.self) { _ in Promise.value }
        }
        return Response(Status(101), nil, headers, content)
    }

    @inline(__always)
    init(_ status: Status, _ type: String?, _ headers: Headers, _ content: Content) {
        self = Response(status: status, headers: headers, ownType: type, content: content)
    }

    /// The response to a client that broke the protocol, or whose request is refused.
    /// - Parameter asProblem: true to send a body even without a detail.
    init(for error: any Error, asProblem: Bool = false) {
        let error =
            switch error {
            case let error as HTTPError: error
            case StreamError.timedOut: HTTPError(Status(408))
            default: HTTPError(.badRequest)
            }
        if asProblem || error.detail != nil {
            self = .problem(error.status, error.detail, headers: error.headers)
        } else {
            self.init("", status: error.status, headers: error.headers)
        }
    }

    /// The reason why no client would understand the response, if any.
    var fault: ResponseError? {
        if case .upgrade = content { return status.code == 101 ? nil : .status(status) }
        // A client would take it for an interim response: RFC 9110, section 15.2.
        if status.code < 200 { return .status(status) }
        if case .stream(let length?, _) = content, length < 0 { return .length(length) }
        return nil
    }
}

/// The reason why a response cannot be sent. The client gets status 500; `onError` gets this error.
public enum ResponseError: Error, Hashable, Sendable {
    /// A status below 200 without an upgrade, or one other than 101 with it.
    case status(Status)
    /// A stream with a negative `length`, in bytes.
    case length(Int)
}

/// A handler's result: a `Response`, or a promise of one.
public protocol ResponseConvertible {
    /// Returns the response or the promise.
    consuming func asAnswer() -> Answer
}

/// A response or a promise of one, for handlers that return either.
public enum Answer: ResponseConvertible {
    case now(Response)
    case later(Promise<Response>)

    /// Returns this answer.
    @inlinable
    public consuming func asAnswer() -> Answer { self }
}

extension Response: ResponseConvertible {
    /// Returns this response.
    @inlinable
    public consuming func asAnswer() -> Answer { .now(self) }
}

extension Promise: ResponseConvertible where T == Response {
    /// Returns this promise.
    @inlinable
    public consuming func asAnswer() -> Answer { .later(self) }
}

extension Guarantee: ResponseConvertible where T == Response {
    /// Returns this guarantee.
    @inlinable
    public consuming func asAnswer() -> Answer { .later(asPromise()) }
}
