import Reactor
import Synchronization

/// The errors with which the library itself rejects promises.
///
/// With Foundation, one line makes it show their descriptions to people:
///
/// ```swift
/// extension PromiseError: @retroactive LocalizedError { public var errorDescription: String? { description } }
/// ```
public enum PromiseError: Error, Sendable {
    /// The work was cancelled.
    case cancelled
    /// The time limit of `timeout(_:)`, or the `timeout:` of `hang` or `connect`, expired.
    case timedOut
    /// A handler for `then` or `recover` returned the promise that the same call had made, directly or through other
    /// promises (with `on:` only directly). The promise would wait for itself.
    case returnedSelf
    /// The last resolver was released without settling the promise.
    case abandoned
    /// The event loop that would have settled the promise or run its handler has ended, together with its thread or
    /// scope.
    case loopEnded
    /// A callback reported neither a value nor an error.
    case invalidCallingConvention
    /// An invalid argument. The text names the call and the value.
    case badInput(String)
    /// The closure passed to `compactMap` returned `nil` instead of a `type`, for `value` (as at most 200 characters).
    case compactMap(value: String, type: String)
    /// `firstValue` or `lastValue` of `PromiseKitNames` found no element that matched.
    case emptySequence
    /// All promises were rejected with these errors, in order. (If all the errors mean "cancelled", the error is
    /// `cancelled` instead.)
    case noWinner([any Error])

    static var noProducer: PromiseError { EventLoop.isEndingOnThisThread ? .loopEnded : .abandoned }

    @usableFromInline
    static func allRejected(_ errors: [any Error]) -> PromiseError {
        errors.allSatisfy(\.isCancelled) ? .cancelled : .noWinner(errors)
    }

    /// Shortens the text, since a value may be large and an error is often printed twice.
    @usableFromInline
    package static func shown<Value>(_ value: Value) -> String {
        let text = String(describing: value)
        guard let end = text.index(text.startIndex, offsetBy: 200, limitedBy: text.endIndex), end < text.endIndex else {
            return text
        }
        return text[..<end] + "…"
    }
}

extension PromiseError: CustomStringConvertible {
    /// A sentence for people.
    public var description: String {
        switch self {
        case .cancelled: "the work was cancelled"
        case .timedOut: "the time limit expired"
        case .returnedSelf: "a handler returned the promise that waits for it"
        case .abandoned: "the promise was abandoned before it settled"
        case .loopEnded: "the event loop that the promise depended on has ended"
        case .invalidCallingConvention: "a callback reported neither a value nor an error"
        case .badInput(let text): text
        case .compactMap(let value, let type): "compactMap found no \(type) in \(value)"
        case .emptySequence: "the sequence has no such element"
        case .noWinner(let errors):
            "none of \(errors.count) promises was fulfilled"
                + (errors.first.map { "; the first was rejected with: \($0)" } ?? "")
        }
    }
}

extension PromiseError: Equatable {
    /// Compares cases and values. Two errors in `noWinner` that are not `Equatable` are equal if they are the same
    /// object, or have one type and equal descriptions.
    public static func == (one: PromiseError, other: PromiseError) -> Bool {
        switch (one, other) {
        case (.noWinner(let errors), .noWinner(let others)):
            errors.count == others.count && zip(errors, others).allSatisfy { ErrorInspection.areEqual($0, $1) }
        case (.compactMap(let value, let type), .compactMap(let otherValue, let otherType)):
            value == otherValue && type == otherType
        case (.badInput(let text), .badInput(let otherText)): text == otherText
        case (.badInput, _), (_, .badInput): false
        // The descriptions of all others differ.
        default: one.description == other.description
        }
    }
}

/// An error of your own that can mean "cancelled".
public protocol CancellableError: Error {
    /// True when the work was cancelled rather than failed.
    var isCancelled: Bool { get }
}

extension Error {
    /// True when the error means "cancelled": `PromiseError.cancelled`, Swift's `CancellationError`, a `SystemError`
    /// with `ECANCELED` from an operation whose connection the program itself has closed or aborted, or a
    /// `CancellableError` whose `isCancelled` is `true`.
    public var isCancelled: Bool { ErrorInspection.isCancelled(self) }
}

private enum ErrorInspection {
    /// The most recent error type that cannot mean "cancelled". Testing a conformance at run time took longer than
    /// passing an error through three promises.
    private static let latest = Atomic<UInt>(0)

    static func isCancelled(_ error: any Error) -> Bool {
        let type = UInt(bitPattern: ObjectIdentifier(type(of: error)))
        if type == latest.load(ordering: .relaxed) { return false }
        switch error {
        case .cancelled as PromiseError: return true
        case is PromiseError: return false
        case is CancellationError: return true
        case let error as SystemError: return error.isCancellation
        case let error as any CancellableError: return error.isCancelled
        default:
            latest.store(type, ordering: .relaxed)
            return false
        }
    }

    /// Compares errors of unknown types.
    static func areEqual(_ one: any Error, _ other: any Error) -> Bool {
        func isEqual<Value: Equatable>(_ value: Value) -> Bool { other as? Value == value }
        if let value = one as? any Equatable { return isEqual(value) }
        guard type(of: one) == type(of: other) else { return false }
        if type(of: one) is AnyClass { return one as AnyObject === other as AnyObject }
        return String(reflecting: one) == String(reflecting: other)
    }
}

/// The errors that `catch`, `recover` and the other error handlers see.
public enum CatchPolicy: UInt8, Sendable {
    /// All errors.
    case allErrors
    /// All errors except those that mean "cancelled", which pass on. The default.
    case allErrorsExceptCancellation

    @usableFromInline
    func catches(_ error: any Error) -> Bool { self == .allErrors || !error.isCancelled }
}
