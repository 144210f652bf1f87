extension Catchable {
    /// Replaces a rejection with the promise that `body` returns for the error.
    ///
    /// ```swift
    /// fetch(url).recover { _ in cached(url) }
    /// ```
    ///
    /// - Parameters:
    ///   - policy: whether `body` sees errors that mean "cancelled"; by default `conf.catchPolicy`. An error that it
    ///     does not see rejects the result.
    ///   - body: called with the error, in a job of this thread's loop. A value skips it.
    /// - Returns: a promise of the value, or one that settles as the promise that `body` returns, or that is rejected
    ///   with the error that `body` throws.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func recover<Next: Thenable>(
        policy: CatchPolicy = conf.catchPolicy, _ body: @escaping (any Error) throws -> Next,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> where Next.T == T {
        let source = asPromise().core
        let child = source.derive(Recover(policy, body))
        return Promise(child.traced("recover", after: source, Promise<T>.self, file, line))
    }

    /// The form for closures of several statements, of which one may be `return .value(…)`.
    ///
    /// Without a declared type, a closure that cannot throw and returns only `.value(…)` makes a guarantee: see the form
    /// that replaces every rejection.
    /// - Parameters:
    ///   - policy: whether the handler sees errors that mean "cancelled"; by default `conf.catchPolicy`.
    ///   - body: called with the error, in a job of this thread's loop.
    /// - Returns: as the form that returns a thenable.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    @_disfavoredOverload
    public func recover(
        policy: CatchPolicy = conf.catchPolicy, _ body: @escaping (any Error) throws -> Promise<T>,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> {
        let source = asPromise().core
        let child = source.derive(Recover(policy, body))
        return Promise(child.traced("recover", after: source, Promise<T>.self, file, line))
    }

    /// The form for closures that return promises on some paths and guarantees on others.
    /// - Parameters:
    ///   - policy: whether the handler sees errors that mean "cancelled"; by default `conf.catchPolicy`.
    ///   - body: called with the error, in a job of this thread's loop.
    /// - Returns: as the form that returns a thenable of one type.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable
    @_disfavoredOverload
    public func recover(
        policy: CatchPolicy = conf.catchPolicy, _ body: @escaping (any Error) throws -> any Thenable<T>,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> {
        let unwrap = { (error: any Error) throws -> Promise<T> in try body(error).asPromise() }
        return recover(policy: policy, unwrap, file: file, line: line)
    }

    /// Replaces every rejection, including a cancellation, with the guarantee that `body` returns.
    ///
    /// Traps if `body` returns the guarantee that this call returns: a guarantee has no error to report that with.
    /// - Parameter body: called with the error, in a job of this thread's loop. A value skips it.
    /// - Returns: a guarantee of the value, or of the value of the guarantee that `body` returns: the rest of the chain
    ///   cannot fail.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    @discardableResult
    public func recover(
        _ body: @escaping (any Error) -> Guarantee<T>, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<T> {
        let source = asPromise().core
        let child = source.derive(RecoverAlways(body))
        return Guarantee(child.traced("recover", after: source, Guarantee<T>.self, file, line))
    }
}

extension Catchable where T == Void {
    /// Handles every error, including a cancellation.
    /// - Parameter body: called with the error, in a job of this thread's loop. A success skips it.
    /// - Returns: a guarantee that is fulfilled in both cases: the rest of the chain cannot fail.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    @discardableResult
    public func recover(
        _ body: @escaping (any Error) -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<Void> {
        let handle = { (error: any Error) -> Guarantee<Void> in
            body(error)
            return .value
        }
        return recover(handle, file: file, line: line)
    }

    /// Handles an error that `policy` lets `body` see.
    /// - Parameters:
    ///   - policy: whether the handler sees errors that mean "cancelled"; by default `conf.catchPolicy`.
    ///   - body: called with the error, in a job of this thread's loop. A success skips it.
    /// - Returns: a promise that is fulfilled after a success and after `body`. Rejected with the error that `body`
    ///   throws, or with one that it does not see.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func recover(
        policy: CatchPolicy = conf.catchPolicy, _ body: @escaping (any Error) throws -> Void,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        let handle = { (error: any Error) -> Promise<Void> in
            try body(error)
            return .value
        }
        return recover(policy: policy, handle, file: file, line: line)
    }
}

@usableFromInline
struct Recover<Next: Thenable>: Operation {
    @usableFromInline typealias Input = Next.T
    @usableFromInline typealias Output = Next.T
    @usableFromInline let policy: CatchPolicy
    @usableFromInline let body: (any Error) throws -> Next

    @inlinable
    init(_ policy: CatchPolicy, _ body: @escaping (any Error) throws -> Next) {
        self.policy = policy
        self.body = body
    }

    @inlinable @inline(__always)
    func run(_ source: Source<Next.T>, _ core: PromiseCore) {
        guard !source.isFulfilled, policy.catches(source.error) else { return core.finish(as: source) }
        do {
            core.finish(following: try body(source.error).asPromise().core, as: Next.T.self)
        } catch { core.finish(throwing: error) }
    }
}

@usableFromInline
struct RecoverAlways<T>: Operation {
    @usableFromInline typealias Input = T
    @usableFromInline typealias Output = T
    @usableFromInline let body: (any Error) -> Guarantee<T>

    @inlinable init(_ body: @escaping (any Error) -> Guarantee<T>) { self.body = body }

    @inlinable @inline(__always)
    func run(_ source: Source<T>, _ core: PromiseCore) {
        guard !source.isFulfilled else { return core.finish(as: source) }
        core.finish(followingGuarantee: body(source.error).core, as: T.self)
    }
}
