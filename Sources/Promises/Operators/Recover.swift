extension Catchable {
    /// Replaces a rejection with the promise that `body` returns for the error, or with another error.
    ///
    /// ```swift
    /// fetch(url).recover { _ in cached(url) }
    /// fetch(url).recover { error in throw Unavailable(error) }
    /// ```
    ///
    /// If the closure cannot throw and returns only guarantees or `.value(…)`, the result is a guarantee, unless a type
    /// is declared.
    /// - Parameters:
    ///   - policy: decides whether `body` sees cancellations. Unseen errors reject the result.
    ///   - body: called with the error, in a job on this thread's loop.
    /// - Returns: a promise with the value or, after a rejection, with the outcome of the promise of `body`. Rejected
    ///   with the error that `body` throws.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func recover(
        policy: CatchPolicy = conf.catchPolicy, _ body: @escaping (any Error) throws -> any Thenable<T>,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> {
        #if compiler(>=6.3)
        return derived("recover", RecoverByPolicy(body, policy), file, line)
        #else
        let replace = { (error: any Error) throws in try policy.catches(error) ? body(error).asPromise() : nil }
        return derived("recover", Recover(replace), file, line)
        #endif
    }

    /// Replaces every rejection, including a cancellation, with the guarantee that `body` returns.
    ///
    /// Traps if `body` returns the guarantee that this call returns.
    /// - Parameter body: called with the error, in a job on this thread's loop.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    @discardableResult
    public func recover(
        _ body: @escaping (any Error) -> Guarantee<T>, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<T> { Guarantee(derived("recover", RecoverAlways(body), file, line).core) }

    /// Replaces a rejection with the promise that `body` returns, if the error's type is `only`.
    /// - Parameters:
    ///   - only: the type of the errors to replace.
    ///   - policy: decides whether `body` sees cancellations.
    ///   - body: called with the error, in a job on this thread's loop.
    /// - Returns: a promise with the value or, after a rejection, with the outcome of the promise of `body`. Rejected
    ///   with the error that `body` throws, or with an error that `body` does not see.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func recover<E: Error>(
        only: E.Type, policy: CatchPolicy = conf.catchPolicy, _ body: @escaping (E) throws -> any Thenable<T>,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> {
        let replace = { (error: any Error) throws in try policy.match(error, only).map { try body($0).asPromise() } }
        return derived("recover", Recover(replace), file, line)
    }

    /// Replaces a rejection with an error equal to `only`, even if it is a cancellation.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func recover<E: Error & Equatable>(
        only: E, _ body: @escaping () throws -> any Thenable<T>, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> {
        let replace = { (error: any Error) throws in error as? E == only ? try body().asPromise() : nil }
        return derived("recover", Recover(replace), file, line)
    }
}

@usableFromInline
struct Recover<T>: Operation {
    @usableFromInline typealias Output = T
    @usableFromInline let body: (any Error) throws -> Promise<T>?

    @inlinable init(_ body: @escaping (any Error) throws -> Promise<T>?) { self.body = body }

    @inlinable @inline(__always)
    func run(_ source: Source<T>, _ core: PromiseCore) {
        guard !source.isFulfilled else { return core.finish(as: source) }
        do {
            guard let next = try body(source.error).map({ CoreRef.retaining($0.core) }) else {
                return core.finish(rejectedAs: source.reference)
            }
            core.finish(followingOwned: next, as: T.self)
        } catch { core.finish(throwing: error, at: source.callSite) }
    }
}

#if compiler(>=6.3)
/// `Recover` without a closure around the program's closure. Swift 6.2 fails to compile this in release builds: its own
/// check of a stored closure with this kind of result fails.
@usableFromInline
struct RecoverByPolicy<T>: Operation {
    @usableFromInline typealias Output = T
    @usableFromInline let body: (any Error) throws -> any Thenable<T>
    @usableFromInline let policy: CatchPolicy

    @inlinable
    init(_ body: @escaping (any Error) throws -> any Thenable<T>, _ policy: CatchPolicy) {
        self.body = body
        self.policy = policy
    }

    @inlinable @inline(__always)
    func run(_ source: Source<T>, _ core: PromiseCore) {
        guard !source.isFulfilled, policy.catches(source.error) else { return core.finish(as: source) }
        do { try core.finish(following: body(source.error).asPromise()) } catch {
            core.finish(throwing: error, at: source.callSite)
        }
    }
}
#endif

@usableFromInline
struct RecoverAlways<T>: Operation {
    @usableFromInline typealias Output = T
    @usableFromInline let body: (any Error) -> Guarantee<T>

    @inlinable init(_ body: @escaping (any Error) -> Guarantee<T>) { self.body = body }

    @inlinable @inline(__always)
    func run(_ source: Source<T>, _ core: PromiseCore) {
        guard !source.isFulfilled else { return core.finish(as: source) }
        core.finish(followingGuarantee: body(source.error))
    }
}
