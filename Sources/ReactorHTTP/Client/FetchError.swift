import Reactor

/// Why a request of the client could not be made.
public enum FetchError: Error, Hashable, Sendable, CustomStringConvertible {
    /// No address of the form `http://host:port/path`, or `ws://host:port/path`, and what is wrong with it. An account is replaced by `***`.
    case badAddress(String, reason: String)
    /// The method is not a token, or the request has a field that the client writes itself in another way.
    case badRequest(String)
    /// The address begins with `https:`, and the client was made without `startTLS`. See `HTTPClient.defaultOptions`.
    case noTLS(String)
    /// No address of the form `http://user:password@host:port`; the account is left out.
    case badProxy(String)
    /// The server has answered the handshake of a WebSocket with this status.
    case refusedWebSocket(Status)
    /// The proxy has answered with this status, and opened no tunnel.
    case refusedByProxy(Status)
    /// More redirects than allowed.
    case tooManyRedirects(limit: Int)
    /// More redirects than allowed, of which this address was the target before.
    case redirectLoop(String)
    /// A limit of time was reached.
    case timedOut(Limit)
    /// The server has ended the connection before its response, or inside its head.
    case endedEarly

    /// The limits of time of `HTTPClient.Options`.
    public enum Limit: Hashable, Sendable {
        /// `connections.makeTimeout`: there was no connection, or its handshake took too long.
        case connect
        /// `firstByte`: there was no response, or only a part of its head.
        case firstByte
        /// `idle`: the server has paused inside of the body, or has not read that of the request.
        case idle
        /// `total`.
        case total
    }

    /// A sentence for people. Control characters, as a redirect may have, are escaped.
    public var description: String {
        switch self {
        case .badAddress(let text, let reason): "'\(text.inOneLine)' is not an address of HTTP: \(reason)"
        case .badRequest(let text): "a request cannot be made so: \(text.inOneLine)"
        case .noTLS(let text):
            "'\(text.inOneLine)' needs TLS: with ReactorTLS, and once HTTPClient.defaultOptions.startTLS = "
                + "{ $0.startTLS(as: tls, serverName: $1) }, or the same in the options of the client"
        case .badProxy(let text): "'\(text)' is not the address of a proxy for HTTP"
        case .refusedWebSocket(let status): "the server has opened no WebSocket: \(status)"
        case .refusedByProxy(let status): "the proxy has opened no tunnel: \(status)"
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
