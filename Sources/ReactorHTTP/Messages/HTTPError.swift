/// Why a message is refused, with the status of the response that says so. A handler throws it to answer with that status:
/// `throw HTTPError(.notFound)`. The client throws it, with 502, for a response that no server may send.
public struct HTTPError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The status that a server answers with.
    public let status: Status
    /// What is wrong, for logs. It is not sent.
    public let reason: String
    /// What is wrong, for the client: a `Router` sends it. See `Response.problem`.
    public let detail: String?

    /// - Parameters:
    ///   - status: the status that a server answers with.
    ///   - reason: what is wrong, for logs.
    ///   - detail: what is wrong, for the client.
    public init(_ status: Status, _ reason: String = "", detail: String? = nil) {
        (self.status, self.reason, self.detail) = (status, reason, detail)
    }

    static func bad(_ reason: String) -> HTTPError { HTTPError(.badRequest, reason) }

    /// `400 Bad Request: two Host fields`.
    public var description: String {
        let reason = reason.isEmpty ? detail ?? "" : reason
        return reason.isEmpty ? "\(status)" : "\(status): \(reason)"
    }
}
