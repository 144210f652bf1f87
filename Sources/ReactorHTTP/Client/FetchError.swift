import Reactor

/// Why a request could not be made.
public enum FetchError: Error, Hashable, Sendable, CustomStringConvertible {
    /// Not an address of the form `http://host:port/path` or `ws://host:port/path`, and the reason. A user name and
    /// password are replaced by `***`.
    case badAddress(String, reason: String)
    /// The method is not a token, or a field contradicts one that the client writes itself.
    case badRequest(String)
    /// The address begins with `https:`, but the client was made without `startTLS`. See `HTTPClient.defaultOptions`.
    case noTLS(String)
    /// Not an address of the form `http://user:password@host:port`; user and password are left out.
    case badProxy(String)
    /// The server has answered the WebSocket handshake with this response. `body` is the beginning of its body: of
    /// 64 KiB at most what arrives within a second.
    case refusedWebSocket(Status, headers: Headers, body: [UInt8])
    /// The proxy has answered with this response and opened no tunnel. The body is as above.
    case refusedByProxy(Status, headers: Headers, body: [UInt8])
    /// More redirects than allowed.
    case tooManyRedirects(limit: Int)
    /// More redirects than allowed, in a loop that leads back to this address.
    case redirectLoop(String)
    /// A time limit was reached.
    case timedOut(Limit)
    /// The server has closed the connection before or inside the response head.
    case endedEarly

    /// The time limits of `HTTPClient.Options`.
    public enum Limit: Hashable, Sendable {
        /// `connections.makeTimeout`: there was no connection, or its handshake took too long.
        case connect
        /// `firstByte`: no response arrived, or only a part of its head.
        case firstByte
        /// `idle`: the server has paused inside the body, or has not read the request's.
        case idle
        /// `total`.
        case total
    }

    /// A sentence for people. Control characters, which a redirect may contain, are escaped.
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
