/// Why a message is refused, with the status to answer with. A handler throws it to answer with that status:
/// `throw HTTPError(.notFound)`. The client throws it, with 502, for a response that no server may send.
public struct HTTPError: Error, Hashable, Sendable, CustomStringConvertible {
    // Four words in all, which functions return in registers.
    /// The status code, and above it the `Purpose`.
    private let code: Int
    /// The reason, for logs. It is not sent unless it is the `detail`.
    public let reason: String
    private let fields: Fields?

    private final class Fields: Sendable {
        let headers: Headers
        init(_ headers: Headers) { self.headers = headers }
    }

    private enum Purpose: Int {
        /// The client may not see the reason.
        case log
        case detail
        /// This is the reason why a response of a server cannot be used.
        case ofServer
    }

    private init(_ status: Status, _ reason: String, _ purpose: Purpose, _ headers: Headers) {
        (code, self.reason) = (status.code | purpose.rawValue << 16, reason)
        fields = headers.isEmpty ? nil : Fields(headers)
    }

    private var purpose: Purpose { Purpose(rawValue: code >> 16)! }

    /// The status that a server answers with.
    public var status: Status { Status(code & 0xFFFF) }

    /// The reason, for the client; `nil` to send only the status. It is sent as by `Response.problem`.
    public var detail: String? { purpose == .detail ? reason : nil }

    /// The fields of the answer, such as `WWW-Authenticate`.
    public var headers: Headers { fields?.headers ?? Headers() }

    /// - Parameters:
    ///   - status: the status that a server answers with.
    ///   - reason: the reason, for logs.
    ///   - headers: the fields of the answer.
    public init(_ status: Status, _ reason: String = "", headers: Headers = Headers()) {
        self.init(status, reason, .log, headers)
    }

    /// - Parameters:
    ///   - status: the status that a server answers with.
    ///   - detail: the reason, as a sentence for the client.
    ///   - headers: the fields of the answer.
    public init(_ status: Status, detail: String, headers: Headers = Headers()) {
        self.init(status, detail, .detail, headers)
    }

    static func bad(_ reason: String) -> HTTPError { HTTPError(.badRequest, reason) }

    /// The client's error for a response that it cannot use. A gateway that does not handle it answers 502.
    static func unusable(_ reason: String) -> HTTPError { HTTPError(Status(502), reason, .ofServer, Headers()) }

    /// `400 Bad Request: two Host fields`; of a client, `unusable response of the server: two lengths`.
    public var description: String {
        if purpose == .ofServer { return "unusable response of the server: \(reason)" }
        return reason.isEmpty ? "\(status)" : "\(status): \(reason)"
    }

    /// `true` if status, reason and fields are equal.
    public static func == (one: HTTPError, other: HTTPError) -> Bool {
        one.code == other.code && one.reason == other.reason && one.headers == other.headers
    }

    /// Hashes the status and the reason.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(code)
        hasher.combine(reason)
    }
}
