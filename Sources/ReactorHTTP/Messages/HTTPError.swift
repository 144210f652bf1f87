/// The reason why a message is refused, and the status of the answer. A handler throws this error to answer with that
/// status: `throw HTTPError(.notFound)`. The client throws it, with 502, for an invalid response.
public struct HTTPError: Error, Hashable, Sendable, CustomStringConvertible {
    // Four words in all, so functions return it in registers.
    /// The status code, and the `Purpose` in the bits from 16 up.
    private let code: Int
    /// The reason, for logs. Sent only as `detail`.
    public let reason: String
    private let fields: Fields?

    private final class Fields: Sendable {
        let headers: Headers
        init(_ headers: Headers) { self.headers = headers }
    }

    private enum Purpose: Int {
        /// The client must not see the reason.
        case log
        case detail
        /// A server's response is unusable for this reason.
        case ofServer
    }

    private init(_ status: Status, _ reason: String, _ purpose: Purpose, _ headers: Headers) {
        (code, self.reason) = (status.code | purpose.rawValue << 16, reason)
        fields = headers.isEmpty ? nil : Fields(headers)
    }

    private var purpose: Purpose { Purpose(rawValue: code >> 16)! }

    /// The status of a server's answer.
    public var status: Status { Status(code & 0xFFFF) }

    /// The reason for the client, sent like `Response.problem`; `nil` to send only the status.
    public var detail: String? { purpose == .detail ? reason : nil }

    /// The answer's fields, such as `WWW-Authenticate`.
    public var headers: Headers { fields?.headers ?? Headers() }

    /// - Parameters:
    ///   - status: the status of a server's answer.
    ///   - reason: the reason, for logs.
    ///   - headers: the answer's fields.
    public init(_ status: Status, _ reason: String = "", headers: Headers = Headers()) {
        self.init(status, reason, .log, headers)
    }

    /// - Parameters:
    ///   - status: the status of a server's answer.
    ///   - detail: the reason, as a sentence for the client.
    ///   - headers: the answer's fields.
    public init(_ status: Status, detail: String, headers: Headers = Headers()) {
        self.init(status, detail, .detail, headers)
    }

    static func bad(_ reason: String) -> HTTPError { HTTPError(.badRequest, reason) }

    /// The client's error for an unusable response. A gateway that does not handle it answers 502.
    static func unusable(_ reason: String) -> HTTPError { HTTPError(Status(502), reason, .ofServer, Headers()) }

    /// `400 Bad Request: two Host fields`. In a client, `unusable response of the server: two lengths`.
    public var description: String {
        if purpose == .ofServer { return "unusable response of the server: \(reason)" }
        return reason.isEmpty ? "\(status)" : "\(status): \(reason)"
    }

    /// True if status, reason and fields are equal.
    public static func == (one: HTTPError, other: HTTPError) -> Bool {
        one.code == other.code && one.reason == other.reason && one.headers == other.headers
    }

    /// Hashes the status and the reason.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(code)
        hasher.combine(reason)
    }
}
