import Glibc
import Promises
import Reactor
import ReactorIO

/// The result of an address after its last attempt.
enum CheckResult: CustomStringConvertible {
    /// The address accepted a connection this long after the start of the successful attempt.
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

/// The error without the address, which begins the line.
private func reason(_ error: any Error) -> String {
    switch error {
    case PromiseError.timedOut: "timed out"
    // Any other call failed locally, before the address was contacted: for lack of descriptors, for instance.
    case let error as SystemError where error.call == .connect: String(cString: strerror(error.code))
    case let error as ConnectError where error.failures.isEmpty: "the name has no address"
    case let error as ConnectError:
        error.failures.map { "\($0.address): \(reason($0.error))" }.joined(separator: "; ")
    default: "\(error)"
    }
}
