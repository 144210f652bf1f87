/// Settles a promise: fulfills it with a value, or rejects it with an error. Only the first settlement counts.
///
/// ```swift
/// let (promise, resolver) = Promise<Int>.pending()
/// promise.done { print($0) }.cauterize()
/// resolver.fulfill(42)
/// ```
///
/// Any thread may settle the promise if the value is `Sendable`. Copies share one right to settle. Releasing the last
/// copy without settling *abandons* the promise: the library logs the line that made the promise, and rejects it with
/// `PromiseError.abandoned`, so that its waiters do not wait forever.
public struct Resolver<T> {
    @usableFromInline let token: ResolverToken

    @inlinable
    package init(_ core: PromiseCore) { token = ResolverToken(core) }

    /// True while a settlement would still count: the promise has neither settled nor been cancelled. Work in pieces
    /// should stop when false. May be read on any thread; another thread may settle the promise a moment later.
    public var isPending: Bool { token.core.ref.borrow { $0.state.load().isClaimable } }

    /// Fulfills the promise with `value`, on any thread. Ignored if the promise has been settled or cancelled.
    ///
    /// ```swift
    /// let answer = Promise<Int> { resolver in ask { number in resolver.fulfill(number) } }
    /// if !waiting.fulfill(lease) { lease.end() }
    /// ```
    /// - Returns: true if this settled the promise. If false, any resource in `value` still belongs to the caller.
    @inlinable
    @discardableResult
    public func fulfill(_ value: T) -> Bool {
        let core = token.core
        guard core.claim() else { return false }
        core.fulfill(value)
        return true
    }

    /// Rejects the promise with `error`, on any thread. Ignored if the promise has been settled or cancelled.
    /// - Returns: true if this settled the promise.
    @discardableResult
    public func reject(_ error: any Error) -> Bool { token.reject(error) }

    /// The overload without a result, for callbacks: `ask(resolver.fulfill)`.
    @inlinable
    @_disfavoredOverload
    public func fulfill(_ value: T) {
        let _: Bool = fulfill(value)
    }

    /// The overload without a result.
    @_disfavoredOverload
    public func reject(_ error: any Error) {
        let _: Bool = reject(error)
    }

    /// Settles the promise with a result of any error type.
    ///
    /// `resolve` fits callbacks of the usual shapes: `Promise<Page> { fetch($0.resolve) }`. (In Swift 6 mode the
    /// value's type must be written, or follow from the context.)
    @inlinable
    public func resolve<E: Error>(_ result: Result<T, E>) {
        switch result {
        case .success(let value): fulfill(value)
        case .failure(let error):
            // Converting an `E` to `any Error` boxes it. If `E` is `any Error`, the new box would contain the old one,
            // so casting and releasing the error would take longer with each relay.
            if case .failure(let error)? = result as? Result<T, any Error> { reject(error) } else { reject(error) }
        }
    }

    /// Settles the promise from callbacks of the forms `(value?, error?)` and `(value, error?)`. An error takes
    /// precedence. If both are `nil`, fulfills a promise of an `Optional` with `nil`, and rejects any other with
    /// `PromiseError.invalidCallingConvention`.
    @inlinable
    public func resolve(_ value: T?, _ error: (any Error)?) {
        if let error {
            reject(error)
        } else if let value {
            fulfill(value)
        } else if let type = T.self as? any OptionalType.Type {
            fulfill(type.none as! T)
        } else {
            reject(PromiseError.invalidCallingConvention)
        }
    }

    // If both orders fit, because the value is itself an error, the one above applies.

    /// Settles the promise from callbacks of the forms `(error?, value?)` and `(error?, value)`.
    @inlinable
    @_disfavoredOverload
    public func resolve(_ error: (any Error)?, _ value: T?) { resolve(value, error) }
}

extension Resolver where T == Void {
    /// Fulfills the promise.
    /// - Returns: true if this settled the promise.
    @inlinable
    @discardableResult
    public func fulfill() -> Bool { fulfill(()) }

    /// The overload without a result, for callbacks: `begin(resolver.fulfill)`.
    @inlinable
    @_disfavoredOverload
    public func fulfill() {
        let _: Bool = fulfill(())
    }

    /// Settles the promise from callbacks of the form `(error?)`, where `nil` fulfills it.
    @inlinable
    public func resolve(_ error: (any Error)?) {
        if let error { reject(error) } else { fulfill(()) }
    }

    /// Fulfills the promise, for callbacks that only report that their work has ended.
    @inlinable
    public func resolve() { fulfill(()) }
}

/// `Optional`, of any type. (Other types may also accept a `nil` literal, with another meaning.)
@usableFromInline
protocol OptionalType {
    static var none: Self { get }
}

extension Optional: OptionalType {}

// Sound because only values of T cross threads through it.
extension Resolver: Sendable where T: Sendable {}

/// Shared by a resolver's copies; its deinit runs when the last copy is released.
@usableFromInline
final class ResolverToken: Sendable {
    @usableFromInline let core: PromiseCore

    @usableFromInline init(_ core: PromiseCore) { self.core = core }

    func reject(_ error: any Error) -> Bool {
        guard core.claim() else { return false }
        core.reject(error)
        return true
    }

    deinit {
        // Usually the promise has settled. This check retains nothing.
        guard core.ref.borrow({ $0.claim() }) else { return }
        conf.log(.abandoned(core.provenance(callSite: core.callSite)))
        core.reject(PromiseError.noProducer)
    }
}
