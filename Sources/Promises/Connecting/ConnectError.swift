import Reactor

/// None of several addresses could be connected to.
public struct ConnectError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What was to be connected to, as it was given: `example.com:80`.
    public let target: String
    /// What became of each address that was tried, in the order in which they failed. Empty if a name has no address.
    public let failures: [Failure]

    /// One address and why it could not be connected to.
    public struct Failure: Hashable, Sendable {
        /// The address.
        public let address: SocketAddress
        /// What the kernel reported.
        public let error: SystemError
    }

    /// `cannot connect to example.com:80: connect 192.0.2.1:80: Connection refused (ECONNREFUSED); …`
    public var description: String {
        let reasons = failures.map { failure in
            failure.error.detail == failure.address.description
                ? "\(failure.error)" : "\(failure.address): \(failure.error)"
        }
        return "cannot connect to \(target): \(reasons.isEmpty ? "it has no address" : reasons.joined(separator: "; "))"
    }
}
