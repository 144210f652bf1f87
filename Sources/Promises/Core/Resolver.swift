import Synchronization

/// What settles a promise that was made by hand. The first settlement counts; later ones are ignored.
///
/// Any thread may settle, if the value is `Sendable`. Copies share one right. When the last of them is gone and
/// nothing was settled, the promise is *abandoned*: that is logged with the line that made it, and it is rejected with
/// `PromiseError.abandoned`, so that nobody waits for ever.
public struct Resolver<T> {
    @usableFromInline let token: ResolverToken

    @inlinable
    init(_ core: PromiseCore) { token = ResolverToken(core) }

    /// Settles with a value.
    @inlinable
    public func fulfill(_ value: T) {
        let core = token.core
        if core.claim() { core.fulfill(value) }
    }

    /// Settles with an error.
    public func reject(_ error: any Error) { token.reject(error) }

    /// Calls `body` if the promise is cancelled before it settles, by `cancel()` on it or on a promise that waits for it: the
    /// moment to stop the work that would have settled it. At most once, as a job of this thread's loop, like a
    /// handler of the promise; otherwise it is released when the promise settles.
    ///
    /// ```swift
    /// Promise<Answer> { resolver in
    ///     let query = database.start { resolver.resolve($0) }
    ///     resolver.onCancel { [weak query] in query?.stop() }
    /// }
    /// ```
    ///
    /// `body` is held by the promise: if it holds what holds the resolver, as a query holds its callback, then nobody
    /// notices when all others have let go of it.
    @available(*, noasync, message: "no loop runs the handler in an async function; call it where the loop is")
    public func onCancel(_ body: @escaping () -> Void) { token.core.watch(OnCancel(body)) }

    /// Settles with a result, of whatever error type.
    ///
    /// The forms of `resolve` are there to be handed to callbacks of the usual shapes: `Promise { fetch($0.resolve) }`.
    @inlinable
    public func resolve<E: Error>(_ result: Result<T, E>) {
        switch result {
        case .success(let value): fulfill(value)
        case .failure(let error):
            // Converting an `E` to `any Error` makes a box for it. Where `E` is `any Error`, that box would contain the box that
            // there is, one level deeper with each relay: casting the error, and releasing it, would take as long as it has relays.
            if case .failure(let error)? = result as? Result<T, any Error> { reject(error) } else { reject(error) }
        }
    }

    /// For callbacks of the form `(value?, error?)`: the error wins; neither is
    /// `PromiseError.invalidCallingConvention`.
    @inlinable
    public func resolve(_ value: T?, _ error: (any Error)?) {
        if let error {
            reject(error)
        } else if let value {
            fulfill(value)
        } else {
            reject(PromiseError.invalidCallingConvention)
        }
    }

    /// For callbacks of the form `(value, error?)`: the error wins. A value that may itself be nil is one: a
    /// `Resolver<Int?>` that is given `(nil, nil)` by an `(Int?, error?)` fulfills with nil.
    @inlinable
    public func resolve(_ value: T, _ error: (any Error)?) {
        if let error { reject(error) } else { fulfill(value) }
    }

    // Where both orders fit, because the value is an error itself, the first is meant.

    /// For callbacks of the form `(error?, value?)`: as in the other order.
    @inlinable
    @_disfavoredOverload
    public func resolve(_ error: (any Error)?, _ value: T?) { resolve(value, error) }

    /// For callbacks of the form `(error?, value)`: as in the other order.
    @inlinable
    @_disfavoredOverload
    public func resolve(_ error: (any Error)?, _ value: T) { resolve(value, error) }
}

extension Resolver where T == Void {
    /// Settles with Void.
    @inlinable
    public func fulfill() { fulfill(()) }

    /// For callbacks of the form `(error?)`.
    @inlinable
    public func resolve(_ error: (any Error)?) {
        if let error { reject(error) } else { fulfill(()) }
    }

    /// For callbacks that only report the end of their work.
    @inlinable
    public func resolve() { fulfill(()) }
}

// As for Promise: what crosses threads through it are values of T.
extension Resolver: Sendable where T: Sendable {}

/// Shared by the copies of a resolver; its end is theirs.
@usableFromInline
final class ResolverToken: Sendable {
    @usableFromInline let core: PromiseCore

    @usableFromInline init(_ core: PromiseCore) { self.core = core }

    func reject(_ error: any Error) {
        if core.claim() { core.reject(error) }
    }

    deinit {
        // Mostly it has settled; finding that out retains nothing.
        guard Unmanaged.passUnretained(core)._withUnsafeGuaranteedRef({ $0.claim() }) else { return }
        Reports.abandoned(core.provenance(origin: core.creationSite))
        let error = PromiseError.ofNobody
        if error.staysPending { core.abandon() } else { core.reject(error) }
    }
}
