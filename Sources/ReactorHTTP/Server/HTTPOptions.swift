import Promises
import Reactor

/// Limits for each client, a change to each response, and the access log.
public struct HTTPOptions: Sendable {
    /// Bytes of a head, and of the trailers of a body. A request beyond it is answered 414 or 431.
    public var maxHead = 16_384
    /// Fields of a head. A request beyond it is answered 431.
    public var maxFields = 100
    /// Bytes of a body, unless the handler sets `request.body.limit`. A request beyond it is answered 413.
    public var maxBody = 1 << 20
    /// How long a client may be silent between two requests, or not read its response. Then its connection ends.
    public var idle: Duration? = .seconds(60)
    /// How long a head may take from its first byte on. A request beyond it is answered 408.
    public var headTime: Duration? = .seconds(10)
    /// How long a request may take to arrive, body included. A request beyond it is answered 408.
    public var requestTime: Duration? = .seconds(30)
    /// Bytes a second, at which a request may take longer.
    public var minimumRate: Int? = 1000
    /// Called on the connection's loop with each response to a request before it is sent, those to a handler's errors included: to
    /// add fields, or to compress. See `Response.body`.
    ///
    /// ```swift
    /// options.transform = { request, response in response.headers["X-Content-Type-Options"] = "nosniff" }
    /// ```
    public var transform: (@Sendable (Request, inout Response) -> Void)?
    /// Called on the connection's loop with each response that has been sent, or whose stream has failed, for an access log. A
    /// request whose client has left before its response has the status 499, as in the log of nginx. With swift-log:
    ///
    /// ```swift
    /// options.log = { logger.info("\($0)") }
    /// ```
    public var log: (@Sendable (ServedRequest) -> Void)?

    /// The limits above, and nothing else.
    public init() {}
}

/// A request whose response has been sent, or has failed to be.
public struct ServedRequest: CustomStringConvertible {
    /// The request; `nil` if it was not understood.
    public let request: Request?
    /// The status of the response.
    public let status: Status
    /// The client's address, where it has one.
    public let peer: SocketAddress?
    /// From the end of the request's head to the end of the response.
    public let duration: Duration

    /// `127.0.0.1:54321 GET /path?query 200 0.0012 seconds`. A client cannot put an end of a line there.
    public var description: String {
        let (peer, request) = (peer?.description ?? "-", request?.description ?? "-")
        return "\(peer) \(request) \(status.code) \(duration)"
    }
}
