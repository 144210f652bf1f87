/// Why a message is refused, with the status to answer with. A handler throws it to answer with that status:
/// `throw HTTPError(.notFound)`. The client throws it, with 502, for a response that no server may send.
public struct HTTPError: Error, Hashable, Sendable, CustomStringConvertible {
    // Three words in all, which functions return in registers.
    /// The status code; negative if the client may see the reason.
    private let code: Int
    /// The reason, for logs. It is not sent unless it is the `detail`.
    public let reason: String

    /// The status that a server answers with.
    public var status: Status { Status(abs(code)) }

    /// The reason, for the client; `nil` to send only the status. A `Router` sends it: see `Response.problem`.
    public var detail: String? { code < 0 ? reason : nil }

    /// - Parameters:
    ///   - status: the status that a server answers with.
    ///   - reason: the reason, for logs.
    public init(_ status: Status, _ reason: String = "") { (code, self.reason) = (status.code, reason) }

    /// - Parameters:
    ///   - status: the status that a server answers with.
    ///   - detail: the reason, as a sentence for the client.
    public init(_ status: Status, detail: String) { (code, reason) = (-status.code, detail) }

    static func bad(_ reason: String) -> HTTPError { HTTPError(.badRequest, reason) }

    /// `400 Bad Request: two Host fields`.
    public var description: String { reason.isEmpty ? "\(status)" : "\(status): \(reason)" }
}
