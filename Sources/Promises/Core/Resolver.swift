/// Settles a promise: fulfills it with a value, or rejects it with an error. The first settlement counts; later ones
/// are ignored.
///
/// ```swift
/// let (promise, resolver) = Promise<Int>.pending()
/// promise.done { print($0) }.cauterize()
/// resolver.fulfill(42)
/// ```
///
/// Any thread may settle, if the value is `Sendable`. Copies share one right to settle. If the last copy is released
/// without settling, the promise is *abandoned*: it is logged with the line that made it, and it is rejected with
/// `PromiseError.abandoned`, so that its waiters do not wait forever.
public struct Resolver<T> {
    @usableFromInline let token: ResolverToken

    @inlinable
    package init(_ core: PromiseCore) { token = ResolverToken(core) }

    /// `true` if a settlement would still count: the promise has neither settled nor been cancelled. Work that is done
    /// in pieces ends when it is false; `fulfill` returns whether it did count. Any thread; another one may settle the
    /// promise a moment later.
    public var isPending: Bool { token.core.ref.borrow { $0.state.load().isClaimable } }

    /// Fulfills the promise with `value`, on any thread. Ignored if the promise has been settled or cancelled before.
    ///
    /// ```swift
    /// let answer = Promise<Int> { resolver in ask { number in resolver.fulfill(number) } }
    /// if !waiting.fulfill(lease) { lease.end() }
    /// ```
    /// - Returns: whether this settled the promise. If not, nobody receives `value`, and any resource in it still
    ///   belongs to the caller.
    @inlinable
    @discardableResult
    public func fulfill(_ value: T) -> Bool {
        let core = token.core
        guard core.claim() else { return false }
        core.fulfill(value)
        return true
    }

    /// Rejects the promise with `error`, on any thread. Ignored if the promise has been settled or cancelled before.
    /// - Returns: whether this settled the promise.
    @discardableResult
    public func reject(_ error: any Error) -> Bool { token.reject(error) }

    /// `fulfill` as a function without a result, as many callbacks are: `ask(resolver.fulfill)`.
    @inlinable
    @_disfavoredOverload
    public func fulfill(_ value: T) {
        let _: Bool = fulfill(value)
    }

    /// `reject` as a function without a result.
    /// - Parameter error: the error of the promise.
    @_disfavoredOverload
    public func reject(_ error: any Error) {
        let _: Bool = reject(error)
    }

    /// Settles with a result, of any error type.
    ///
    /// The overloads of `resolve` fit callbacks of the usual shapes: `Promise<Page> { fetch($0.resolve) }`. (Swift 6
    /// mode needs the type of the value, there or by the context.)
    @inlinable
    public func resolve<E: Error>(_ result: Result<T, E>) {
        switch result {
        case .success(let value): fulfill(value)
        case .failure(let error):
            // Converting an `E` to `any Error` boxes it. If `E` is `any Error`, the new box would contain the old one,
            // one level deeper with each relay: casting and releasing the error would take time proportional to the
            // relays.
            if case .failure(let error)? = result as? Result<T, any Error> { reject(error) } else { reject(error) }
        }
    }

    /// For callbacks of the forms `(value?, error?)` and `(value, error?)`; the error takes precedence. If both are nil,
    /// rejects with `PromiseError.invalidCallingConvention`, but a promise of an `Optional` is fulfilled with nil.
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

    // Where both orders fit, because the value is itself an error, the first one applies.

    /// For callbacks of the forms `(error?, value?)` and `(error?, value)`; see the form with the other order.
    @inlinable
    @_disfavoredOverload
    public func resolve(_ error: (any Error)?, _ value: T?) { resolve(value, error) }
}

extension Resolver where T == Void {
    /// Settles with Void.
    /// - Returns: whether this settled the promise: false if it had settled before, or was cancelled.
    @inlinable
    @discardableResult
    public func fulfill() -> Bool { fulfill(()) }

    /// `fulfill` as a function without a result, as many callbacks are: `begin(resolver.fulfill)`.
    @inlinable
    @_disfavoredOverload
    public func fulfill() {
        let _: Bool = fulfill(())
    }

    /// For callbacks of the form `(error?)`: `nil` fulfills the promise.
    @inlinable
    public func resolve(_ error: (any Error)?) {
        if let error { reject(error) } else { fulfill(()) }
    }

    /// For callbacks that only report the end of their work.
    @inlinable
    public func resolve() { fulfill(()) }
}

/// `Optional`, of any type. (Other types may have `nil` as a literal too, and mean something else by it.)
@usableFromInline
protocol OptionalType {
    static var none: Self { get }
}

extension Optional: OptionalType {}

// As for Promise: only values of T cross threads through it.
extension Resolver: Sendable where T: Sendable {}

/// Shared by a resolver's copies; its deinit marks the end of the last one.
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
        // Usually it has settled; this check retains nothing.
        guard core.ref.borrow({ $0.claim() }) else { return }
        conf.log(.abandoned(core.provenance(callSite: core.callSite)))
        core.reject(PromiseError.noProducer)
    }
}
