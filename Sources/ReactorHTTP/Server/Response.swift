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
/// The server writes `Date` and `Content-Type`, unless `headers` has them, and the fields that delimit the body:
/// `Content-Length` and `Transfer-Encoding` of a program are left out. Only a response to HEAD, which has no body, may
/// set `Content-Length`. The options in `Connection` are merged: `close` ends the connection after the response, and a
/// field `Upgrade` is named there.
public struct Response {
    /// The status.
    public var status: Status
    /// Further fields.
    public var headers: Headers
    /// The default `Content-Type`, if `headers` has none.
    private(set) var ownType: String?
    var content: Content

    /// The field `Content-Type`: from `headers`, or else the type with which the response was made. Setting it replaces
    /// both; `nil` leaves the field out.
    public var contentType: String? {
        get { headers["content-type"] ?? ownType }
        set {
            headers.remove("content-type")
            ownType = newValue
        }
    }
}

// In an extension: an initializer in the type itself suppresses that of its members, and copies its result.
extension Response {
    /// A response with a text, sent as UTF-8.
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
    ///   - location: the field `Location`: an address, or a path. Blanks, control characters and what is not ASCII are
    ///     escaped, as `%20` is; all else is sent as it is, so escape what a user has chosen.
    ///   - status: 303, so that the client sends GET to the new address; 307 and 308 keep the method.
    public static func redirect(to location: String, status: Status = Status(303)) -> Response {
        Response(status, headers: ["Location": location.utf8.allSatisfy(isVisible) ? location : escaped(location)])
    }

    /// A response whose body is written while it is being sent.
    ///
    /// `body` is called once, when the head can be sent; not for HEAD. The body ends with its promise. If it is
    /// rejected, the connection ends, so that the client sees an incomplete response; before the first write the client
    /// gets the error's status instead.
    /// - Parameters:
    ///   - status: the status.
    ///   - type: the field `Content-Type`, unless `headers` has one; `nil` for none.
    ///   - headers: the fields of the head.
    ///   - length: the length of the body in bytes; `nil` to send it in chunks.
    ///   - body: writes the body. After its first write, a client that waits for `100 Continue` no longer gets it.
    public static func stream(
        status: Status = .ok, type: String? = "application/octet-stream", headers: Headers = Headers(),
        length: Int? = nil, _ body: @escaping (BodyOutput) throws -> Promise<Void>
    ) -> Response { Response(status, type, headers, .stream(length: length, body)) }

    /// Answers `101 Switching Protocols`, and hands the connection over: RFC 9110, section 7.8.
    ///
    /// Bytes that the client has sent after its request are the first that `body` reads. HTTP's time limits no longer
    /// apply. The connection ends with the promise of `body`; `onError` gets its error, unless it is a `StreamError` or
    /// an error of the connection, which clients cause. The handler checks the request first: `Upgrade: protocol`, and
    /// what the protocol requires. HTTP/1.0 has no upgrades: the response is 426, which names the protocol.
    /// - Parameters:
    ///   - protocol: the field `Upgrade`.
    ///   - headers: further fields.
    ///   - body: continues with the connection.
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

    /// The response to a client that has broken the protocol, or whose request is refused.
    /// - Parameter asProblem: whether it has a body in any case.
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

    /// Why no client would understand the response. `nil` if it is valid.
    var fault: ResponseError? {
        if case .upgrade = content { return status.code == 101 ? nil : .status(status) }
        // A client would take it for an interim response: RFC 9110, section 15.2.
        if status.code < 200 { return .status(status) }
        if case .stream(let length?, _) = content, length < 0 { return .length(length) }
        return nil
    }
}

/// Why a response cannot be sent. The client gets status 500, and `onError` this error.
public enum ResponseError: Error, Hashable, Sendable {
    /// A status below 200 without an upgrade, or another one with an upgrade.
    case status(Status)
    /// A stream with a negative `length`, in bytes.
    case length(Int)
}

/// The result of a handler: a `Response`, or a promise of one.
public protocol ResponseConvertible {
    /// The response, or the promise.
    consuming func asAnswer() -> Answer
}

/// A response, or a promise of one; for handlers that return either.
public enum Answer: ResponseConvertible {
    case now(Response)
    case later(Promise<Response>)

    /// This.
    @inlinable
    public consuming func asAnswer() -> Answer { self }
}

extension Response: ResponseConvertible {
    /// This, now.
    @inlinable
    public consuming func asAnswer() -> Answer { .now(self) }
}

extension Promise: ResponseConvertible where T == Response {
    /// This, later.
    @inlinable
    public consuming func asAnswer() -> Answer { .later(self) }
}

extension Guarantee: ResponseConvertible where T == Response {
    /// This, later.
    @inlinable
    public consuming func asAnswer() -> Answer { .later(asPromise()) }
}
