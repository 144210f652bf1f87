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
    public var isCancelled: Bool {
        switch self as any Error {
        case PromiseError.cancelled: true
        case is CancellationError: true
        case let error as any CancellableError: error.isCancelled
        default: false
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
