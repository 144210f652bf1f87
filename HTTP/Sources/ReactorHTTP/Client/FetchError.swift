/// Why a request of the client could not be made.
public enum FetchError: Error, Hashable, Sendable {
    /// No address of the form `http://host:port/path`.
    case badAddress(String)
    /// The method is not a token, or the request has a field that the client writes itself in another way.
    case badRequest(String)
    /// The address begins with `https:`, and the client was made without `startTLS`.
    case noTLS(String)
    /// No address of the form `http://user:password@host:port`; the account is left out.
    case badProxy(String)
    /// The proxy has answered with this status, and opened no tunnel.
    case refusedByProxy(Status)
    /// More redirects than allowed.
    case tooManyRedirects(limit: Int)
    /// The server has not begun its response within `firstByte`.
    case noResponse
    /// The server has ended the connection before its response.
    case endedEarly
}

extension FetchError: CustomStringConvertible {
    /// A sentence for people.
    public var description: String {
        switch self {
        case .badAddress(let text): "'\(text)' is not an address of HTTP"
        case .badRequest(let text): "a request cannot be made so: \(text)"
        case .noTLS(let text): "'\(text)' needs TLS, and the client has no startTLS"
        case .badProxy(let text): "'\(text)' is not the address of a proxy for HTTP"
        case .refusedByProxy(let status): "the proxy has opened no tunnel: \(status)"
        case .tooManyRedirects(let limit): "more than \(limit) redirects"
        case .noResponse: "the server has not responded in time"
        case .endedEarly: "the server has ended the connection before its response"
        }
    }
}
