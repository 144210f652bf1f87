import Promises
import ReactorIO

/// A response's status code: RFC 9110, section 15.
public struct Status: Hashable, Sendable, CustomStringConvertible {
    /// Three digits.
    public let code: Int

    /// - Parameter code: three digits. Other numbers become 500.
    public init(_ code: Int) { self.code = 100...999 ~= code ? code : 500 }

    /// True if the code is from 200 to 299.
    public var isSuccess: Bool { 200...299 ~= code }

    /// True when a response with this status never has a body, whatever its fields: RFC 9112, section 6.3.
    var hasNoBody: Bool { code < 200 || code == 204 || code == 304 }

    /// The reason phrase, meaningless to clients; empty for codes without a well-known one.
    public var reason: String { reasons[code] ?? "" }

    /// `404 Not Found`.
    public var description: String { reason.isEmpty ? "\(code)" : "\(code) \(reason)" }
}

private let reasons = [
    100: "Continue", 101: "Switching Protocols", 200: "OK", 201: "Created", 202: "Accepted", 204: "No Content",
    206: "Partial Content", 301: "Moved Permanently", 302: "Found", 303: "See Other", 304: "Not Modified",
    307: "Temporary Redirect", 308: "Permanent Redirect", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden",
    404: "Not Found", 405: "Method Not Allowed", 408: "Request Timeout", 409: "Conflict", 412: "Precondition Failed",
    413: "Content Too Large", 414: "URI Too Long", 415: "Unsupported Media Type", 416: "Range Not Satisfiable",
    417: "Expectation Failed", 421: "Misdirected Request", 422: "Unprocessable Content", 426: "Upgrade Required",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large", 500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway",
    503: "Service Unavailable", 504: "Gateway Timeout", 505: "HTTP Version Not Supported",
]

// The most common codes; `Status(418)` makes any other.
extension Status {
    /// 200: the request has succeeded.
    public static var ok: Status { Status(200) }
    /// 201: the request has created the resource in `Location`.
    public static var created: Status { Status(201) }
    /// 204: success without a body.
    public static var noContent: Status { Status(204) }
    /// 304: the client's copy is current.
    public static var notModified: Status { Status(304) }
    /// 400: the request is not understood.
    public static var badRequest: Status { Status(400) }
    /// 401: the client must authenticate.
    public static var unauthorized: Status { Status(401) }
    /// 403: the client may not do this.
    public static var forbidden: Status { Status(403) }
    /// 404: nothing is here.
    public static var notFound: Status { Status(404) }
    /// 405: the method is not allowed; `Allow` lists the allowed ones.
    public static var methodNotAllowed: Status { Status(405) }
    /// 409: the request conflicts with the present state.
    public static var conflict: Status { Status(409) }
    /// 413: the body is too long.
    public static var contentTooLarge: Status { Status(413) }
    /// 422: the body is well formed but not acceptable.
    public static var unprocessableContent: Status { Status(422) }
    /// 429: too many requests; `Retry-After` says when to retry.
    public static var tooManyRequests: Status { Status(429) }
    /// 500: the server has failed.
    public static var internalServerError: Status { Status(500) }
    /// 503: the server cannot handle the request now.
    public static var serviceUnavailable: Status { Status(503) }
}

extension ByteWriter {
    /// Faster than string interpolation.
    @inline(__always)
    mutating func append(_ text: StaticString) { text.withUTF8Buffer { append($0) } }
}
