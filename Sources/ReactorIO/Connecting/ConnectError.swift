import Promises
import Reactor

/// The error when no connection to any of several addresses could be opened.
public struct ConnectError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The target as the caller gave it: `example.com:80`.
    public let target: String
    /// The addresses that were tried, with their errors, in order of failure. Empty if a name has no address.
    public let failures: [Failure]

    /// A failed address, and the reason.
    public struct Failure: Hashable, Sendable {
        /// The address, which refused, did not answer in time, or could not be reached.
        public let address: SocketAddress
        /// The kernel's error.
        public let error: SystemError
    }

    /// `cannot connect to example.com:80: connect 192.0.2.1:80: Connection refused (ECONNREFUSED); …`
    public var description: String {
        let reasons = failures.map { failure in
            failure.error.detail?.hasPrefix(failure.address.description) == true
                ? "\(failure.error)" : "\(failure.address): \(failure.error)"
        }
        return "cannot connect to \(target): \(reasons.isEmpty ? "it has no address" : reasons.joined(separator: "; "))"
    }
}
