import Promises
import Reactor
import ReactorIO

/// Limits per client, a change to each response, and the access log.
public struct HTTPOptions: Sendable {
    /// The maximum size in bytes of a head, and of a body's trailers. A larger one is answered with 414 or 431.
    public var maxHead = 16_384
    /// The maximum number of fields in a head. More are answered with 431.
    public var maxFields = 100
    /// The maximum size of a body in bytes, unless the handler sets `request.body.limit`. A larger one is answered with
    /// 413.
    public var maxBody = 1 << 20
    /// How long a client may be silent between requests, or not read its response, before its connection ends.
    public var idle: Duration? = .seconds(60)
    /// How long a head may take after its first byte, beside the time of its bytes at `minimumRate`: one of 16 KiB may
    /// take 26 s. A slower one is answered with 408.
    public var headTime: Duration? = .seconds(10)
    /// How long a request may take to arrive, body included. A slower one is answered with 408.
    public var requestTime: Duration? = .seconds(30)
    /// The rate, in bytes per second, at which heads and requests may take longer: each received byte adds its time.
    /// With `nil` both times are totals.
    public var minimumRate: Int? = 1000
    /// Called on the connection's loop with each response to a request before it is sent, error responses included: to
    /// add fields, or to compress. See `Response.body`.
    ///
    /// ```swift
    /// options.transform = { request, response in response.headers["X-Content-Type-Options"] = "nosniff" }
    /// ```
    public var transform: (@Sendable (Request, inout Response) -> Void)?
    /// The access log: called on the connection's loop with each response that has been sent, or whose stream has
    /// failed. If the client leaves before its response, the status is 499, as in nginx's log. With swift-log:
    ///
    /// ```swift
    /// options.log = { logger.info("\($0)") }
    /// ```
    public var log: (@Sendable (ServedRequest) -> Void)?

    /// The defaults above.
    public init() {}
}

/// A request whose response has been sent, or could not be.
public struct ServedRequest: CustomStringConvertible {
    /// The request; `nil` if it could not be parsed.
    public let request: Request?
    /// The status of the response.
    public let status: Status
    /// The client's address, where it has one.
    public let peer: SocketAddress?
    /// The time from the end of the request's head to the end of the response.
    public let duration: Duration

    /// `127.0.0.1:54321 GET /path?query 200 0.0012 seconds`, and the request's `id`, if it has one. Always one line,
    /// whatever the client sends.
    public var description: String {
        let (peer, text) = (peer?.description ?? "-", request?.description ?? "-")
        return "\(peer) \(text) \(status.code) \(duration)\(request?.id.map { " \($0.inOneLine)" } ?? "")"
    }
}
