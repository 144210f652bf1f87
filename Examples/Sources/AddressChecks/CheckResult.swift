import Glibc
import Promises
import Reactor

/// What is known of an address after its last attempt.
enum CheckResult: CustomStringConvertible {
    /// It has accepted a connection, so long after the beginning of the attempt that succeeded.
    case ok(Duration)
    /// All attempts failed, the last one with this error.
    case failed(any Error)

    /// `ok 12 ms`, or the reason: `Connection refused`.
    var description: String {
        switch self {
        case .ok(let time): "ok \(Int((time / .milliseconds(1)).rounded())) ms"
        case .failed(let error): reason(error)
        }
    }
}

/// The error without the address, with which the line begins.
private func reason(_ error: any Error) -> String {
    switch error {
    case PromiseError.timedOut: "timed out"
    // Any other call has failed here, before the address was asked: of too few descriptors, for instance.
    case let error as SystemError where error.call == .connect: String(cString: strerror(error.code))
    case let error as ConnectError where error.failures.isEmpty: "the name has no address"
    case let error as ConnectError:
        error.failures.map { "\($0.address): \(reason($0.error))" }.joined(separator: "; ")
    default: "\(error)"
    }
}
