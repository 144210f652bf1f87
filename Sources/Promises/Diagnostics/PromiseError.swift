import Synchronization

/// What the library itself rejects promises with.
public enum PromiseError: Error, Equatable, Sendable {
    /// The work was cancelled.
    case cancelled
    /// The time given to `timeout:` has passed.
    case timedOut
    /// A handler returned the promise that its own `then` or `recover` had made, directly or through others: it would
    /// wait for itself.
    case returnedSelf
    /// The last resolver went without settling the promise.
    case abandoned
    /// A callback reported neither a value nor an error.
    case invalidCallingConvention
    /// An argument that makes no sense; the text names the call and the value.
    case badInput(String)
}

extension PromiseError: CustomStringConvertible {
    /// A sentence for people.
    public var description: String {
        switch self {
        case .cancelled: "the work was cancelled"
        case .timedOut: "the time-out has passed"
        case .returnedSelf: "a handler returned the promise that waits for it"
        case .abandoned: "nobody is left who could settle the promise"
        case .invalidCallingConvention: "a callback reported neither a value nor an error"
        case .badInput(let text): text
        }
    }
}

/// An error of your own that can mean "cancelled".
public protocol CancellableError: Error {
    /// Whether this error means that the work was cancelled rather than that it failed.
    var isCancelled: Bool { get }
}

extension Error {
    /// Whether the error means "cancelled": `PromiseError.cancelled`, Swift's `CancellationError`, or a
    /// `CancellableError` that says so.
    public var isCancelled: Bool { OtherError.isCancelled(self) }
}

private enum OtherError {
    /// The type of error that was last found to be none of those which can mean "cancelled". Asking a type at run time
    /// what it conforms to took longer than three hops of the chain that leads to the `catch` which asks.
    private static let latest = Atomic<UInt>(0)

    static func isCancelled(_ error: any Error) -> Bool {
        let type = UInt(bitPattern: ObjectIdentifier(type(of: error)))
        if type == latest.load(ordering: .relaxed) { return false }
        switch error {
        case let error as PromiseError: return error == .cancelled
        case is CancellationError: return true
        case let error as any CancellableError: return error.isCancelled
        default:
            latest.store(type, ordering: .relaxed)
            return false
        }
    }
}

/// Which errors `catch` and `recover` see.
public enum CatchPolicy: UInt8, Sendable {
    /// All of them.
    case allErrors
    /// All but those that mean "cancelled", which pass by. The default.
    case allErrorsExceptCancellation

    @usableFromInline
    func catches(_ error: any Error) -> Bool { self == .allErrors || !error.isCancelled }
}
