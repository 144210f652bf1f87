/// Why a message is refused, with the status of the response that says so. A handler throws it to answer with that status:
/// `throw HTTPError(.notFound)`. The client throws it, with 502, for a response that no server may send.
public struct HTTPError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The status that a server answers with.
    public let status: Status
    /// What is wrong, for logs. It is not sent.
    public let reason: String

    /// - Parameters:
    ///   - status: the status that a server answers with.
    ///   - reason: what is wrong, for logs.
    public init(_ status: Status, _ reason: String = "") { (self.status, self.reason) = (status, reason) }

    static func bad(_ reason: String) -> HTTPError { HTTPError(.badRequest, reason) }

    /// `400 Bad Request: two Host fields`.
    public var description: String { reason.isEmpty ? "\(status)" : "\(status): \(reason)" }
}
