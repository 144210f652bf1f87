/// Anything that settles once: `Promise`, `Guarantee`, and your own types. A type with `pipe`, `result` and `asPromise`
/// gets all operators.
public protocol Thenable<T> {
    /// The type of the value.
    associatedtype T

    /// Adds a handler for the outcome; see `Promise.pipe`.
    /// - Parameter handler: called exactly once, inline at settlement, or at once if this has settled.
    func pipe(to handler: @escaping @Sendable (Result<T, any Error>) -> Void)

    /// The outcome; `nil` while pending.
    var result: Result<T, any Error>? { get }

    /// Makes a promise that settles as this does, for the operators. For a type with its own `pipe`:
    ///
    /// ```swift
    /// func asPromise() -> Promise<Int> { Promise { seal in pipe { seal.resolve($0) } } }
    /// ```
    ///
    /// This compiles if the value is `Sendable`, since `pipe` may call its handler on any thread.
    func asPromise() -> Promise<T>
}

/// A thenable that may be rejected, with `catch` and the other error operators.
public protocol Catchable<T>: Thenable {}

extension Thenable {
    /// Makes a promise that is fulfilled with `value`, so that a closure that returns any thenable can return
    /// `.value(x)`.
    ///
    /// ```swift
    /// fetch(url).then { page in page.isEmpty ? .value(home) : render(page) }
    /// ```
    @inlinable
    public static func value<V>(_ value: V) -> Promise<V> where Self == Promise<V> {
        Promise(PromiseCore.fulfilled(value))
    }
}

extension Thenable where Self == Promise<Void> {
    /// A fulfilled promise, which a closure that returns any thenable can return as `.value`.
    @inlinable
    public static var value: Promise<Void> { Promise(PromiseCore.void) }
}

extension Thenable {
    /// The value; `nil` while pending or if rejected. (A value of `nil` is returned as `.some(nil)`.)
    @inlinable
    public var settledValue: T? {
        guard case .success(let value) = result else { return nil }
        return value
    }

    /// The error; `nil` while pending or if fulfilled.
    @inlinable
    public var error: (any Error)? {
        guard case .failure(let error) = result else { return nil }
        return error
    }

    /// True if fulfilled, false if rejected, `nil` while pending. Reading it does not handle the error.
    @inlinable
    var isFulfilledIfSettled: Bool? {
        if let promise = self as? Promise<T> { return promise.core.settled?.isFulfilled }
        return switch result {
        case nil: nil
        case .success: true
        case .failure: false
        }
    }

    /// True when neither fulfilled nor rejected.
    @inlinable
    public var isPending: Bool { isFulfilledIfSettled == nil }

    /// True when fulfilled or rejected.
    @inlinable
    public var isResolved: Bool { isFulfilledIfSettled != nil }

    /// True when settled with a value.
    @inlinable
    public var isFulfilled: Bool { isFulfilledIfSettled == true }

    /// True when settled with an error.
    @inlinable
    public var isRejected: Bool { isFulfilledIfSettled == false }
}
