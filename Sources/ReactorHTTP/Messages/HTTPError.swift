/// Why a message is refused, with the status of the response that says so. A handler throws it to answer with that status:
/// `throw HTTPError(.notFound)`. The client throws it, with 502, for a response that no server may send.
public struct HTTPError: Error, Hashable, Sendable, CustomStringConvertible {
    // Three words in all, which functions return in registers.
    /// That of the status; negative if the client is told the reason.
    private let code: Int
    /// What is wrong, for logs. It is not sent, unless it is the `detail`.
    public let reason: String

    /// The status that a server answers with.
    public var status: Status { Status(abs(code)) }

    /// What is wrong, for the client; `nil` to tell it the status alone. A `Router` sends it: see `Response.problem`.
    public var detail: String? { code < 0 ? reason : nil }

    /// - Parameters:
    ///   - status: the status that a server answers with.
    ///   - reason: what is wrong, for logs.
    public init(_ status: Status, _ reason: String = "") { (code, self.reason) = (status.code, reason) }

    /// - Parameters:
    ///   - status: the status that a server answers with.
    ///   - detail: what is wrong, in a sentence for the client.
    public init(_ status: Status, detail: String) { (code, reason) = (-status.code, detail) }

    static func bad(_ reason: String) -> HTTPError { HTTPError(.badRequest, reason) }

    /// `400 Bad Request: two Host fields`.
    public var description: String { reason.isEmpty ? "\(status)" : "\(status): \(reason)" }
}
