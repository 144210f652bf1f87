import Reactor

/// The reason why a request could not be made.
public enum FetchError: Error, Hashable, Sendable, CustomStringConvertible {
    /// An address that is not like `http://host:port/path` or `ws://host:port/path`, and the reason. User name and
    /// password become `***`.
    case badAddress(String, reason: String)
    /// The method is not a token, or a header field contradicts the client's own.
    case badRequest(String)
    /// An `https:` address for a client without `startTLS`. See `HTTPClient.defaultOptions`.
    case noTLS(String)
    /// A proxy's address that is not like `http://user:password@host:port`. User and password are omitted.
    case badProxy(String)
    /// The server refused the WebSocket handshake with this response. `body` is the part of the first 64 KiB that
    /// arrives within a second.
    case refusedWebSocket(Status, headers: Headers, body: [UInt8])
    /// The response of a proxy that refused a tunnel. `body` is as in `refusedWebSocket`.
    case refusedByProxy(Status, headers: Headers, body: [UInt8])
    /// More redirects than allowed.
    case tooManyRedirects(limit: Int)
    /// More redirects than allowed, in a loop through this address.
    case redirectLoop(String)
    /// A time limit was reached.
    case timedOut(Limit)
    /// The server closed the connection before or inside the response head.
    case endedEarly

    /// The time limits of `HTTPClient.Options`.
    public enum Limit: Hashable, Sendable {
        /// `connections.makeTimeout`: no connection, or a slow handshake.
        case connect
        /// `firstByte`: no response, or only a part of its head.
        case firstByte
        /// `idle`: the server paused inside the body, or did not read the request's.
        case idle
        /// `total`.
        case total
    }

    /// A text for humans. Control characters, which a redirect may contain, are escaped.
    public var description: String {
        switch self {
        case .badAddress(let text, let reason): "'\(text.inOneLine)' is not an address of HTTP: \(reason.inOneLine)"
        case .badRequest(let text): "a request cannot be made so: \(text.inOneLine)"
        case .noTLS(let text):
            "'\(text.inOneLine)' needs TLS: with ReactorTLS, and once HTTPClient.defaultOptions.startTLS = "
                + "{ $0.startTLS(as: tls, serverName: $1) }, or the same in the options of the client"
        case .badProxy(let text): "'\(text)' is not the address of a proxy for HTTP"
        case .refusedWebSocket(let status, _, _): "the server has opened no WebSocket: \(status)"
        case .refusedByProxy(let status, _, _): "the proxy has opened no tunnel: \(status)"
        case .tooManyRedirects(let limit): "more than \(limit) redirects"
        case .redirectLoop(let text): "redirects that lead back to '\(text.inOneLine)', again and again"
        case .timedOut(.connect): "no connection within connections.makeTimeout"
        case .timedOut(.firstByte): "no response within firstByte"
        case .timedOut(.idle): "nothing more of a body within idle"
        case .timedOut(.total): "not done within total"
        case .endedEarly: "the server has ended the connection before the end of a response's head"
        }
    }
}
