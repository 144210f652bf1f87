import Promises
import Reactor
import ReactorIO

/// Limits per client, a change to each response, and the access log.
public struct HTTPOptions: Sendable {
    /// The maximum size in bytes of a head, and of a body's trailers. A larger one is answered with 414 or 431.
    public var maxHead = 16_384
    /// A head's maximum number of fields. More are answered with 431.
    public var maxFields = 100
    /// A body's maximum size in bytes, unless the handler sets `request.body.limit`. A larger one is answered with 413.
    public var maxBody = 1 << 20
    /// The time until the connection closes if the client sends no next request or does not read a response.
    public var idle: Duration? = .seconds(60)
    /// The time limit for a head from its first byte, extended by each byte at `minimumRate`: 16 KiB may take 26 s. A
    /// slower head is answered with 408.
    public var headTime: Duration? = .seconds(10)
    /// The time limit for a request with its body, extended in the same way. A slower request is answered with 408.
    public var requestTime: Duration? = .seconds(30)
    /// The rate in bytes per second that extends `headTime` and `requestTime`: each received byte adds its time. With
    /// `nil`, both are total times.
    public var minimumRate: Int? = 1000
    /// Called on the connection's loop with each response before it is sent, error responses included, to add fields or
    /// compress. See `Response.body`.
    ///
    /// ```swift
    /// options.transform = { request, response in response.headers["X-Content-Type-Options"] = "nosniff" }
    /// ```
    public var transform: (@Sendable (Request, inout Response) -> Void)?
    /// The access log. Called on the connection's loop with each response that was sent, or whose stream failed. If the
    /// client disconnects first, the status is 499, as in nginx's log. With swift-log:
    ///
    /// ```swift
    /// options.log = { logger.info("\($0)") }
    /// ```
    public var log: (@Sendable (ServedRequest) -> Void)?

    /// The defaults above.
    public init() {}
}

/// A request whose response was sent, or could not be.
public struct ServedRequest: CustomStringConvertible {
    /// The request; `nil` if it could not be parsed.
    public let request: Request?
    /// The status of the response.
    public let status: Status
    /// The client's address, if any.
    public let peer: SocketAddress?
    /// The time from the end of the request's head to the response's end.
    public let duration: Duration

    /// `127.0.0.1:54321 GET /path?query 200 0.0012 seconds`, and the request's `id`, if any. Always one line.
    public var description: String {
        let (peer, text) = (peer?.description ?? "-", request?.description ?? "-")
        return "\(peer) \(text) \(status.code) \(duration)\(request?.id.map { " \($0.inOneLine)" } ?? "")"
    }
}
