extension Catchable {
    /// Replaces a rejection with an error of type `only` with the promise that `body` returns.
    /// - Parameters:
    ///   - only: the type of the errors to replace. All other outcomes skip `body`.
    ///   - policy: whether the handler sees errors that mean "cancelled"; by default `conf.catchPolicy`.
    ///   - body: called with the error, in a job of this thread's loop.
    /// - Returns: a promise of the value, or one that settles as the promise that `body` returns. Rejected with the
    ///   error that `body` throws, or with one that it does not see.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func recover<E: Error, Next: Thenable>(
        only: E.Type, policy: CatchPolicy = conf.catchPolicy, _ body: @escaping (E) throws -> Next,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> where Next.T == T {
        let handle = { (error: any Error) throws -> Next? in try policy.match(error, only).map(body) }
        return recoverSome(handle, file, line)
    }

    /// The form for closures of several statements, of which one may be `return .value(…)`.
    /// - Parameters:
    ///   - only: the type of the errors to replace.
    ///   - policy: whether the handler sees errors that mean "cancelled"; by default `conf.catchPolicy`.
    ///   - body: called with the error, in a job of this thread's loop.
    /// - Returns: as the form that returns a thenable.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    @_disfavoredOverload
    public func recover<E: Error>(
        only: E.Type, policy: CatchPolicy = conf.catchPolicy, _ body: @escaping (E) throws -> Promise<T>,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> {
        let handle = { (error: any Error) throws -> Promise<T>? in try policy.match(error, only).map(body) }
        return recoverSome(handle, file, line)
    }

    /// Replaces a rejection with an error equal to `only` with the promise that `body` returns.
    /// - Parameters:
    ///   - only: the error to replace, whatever the policy for cancellations. All other outcomes skip `body`.
    ///   - body: called in a job of this thread's loop.
    /// - Returns: a promise of the value, or one that settles as the promise that `body` returns. Rejected with the
    ///   error that `body` throws, or with another error of this promise.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func recover<E: Error & Equatable, Next: Thenable>(
        only: E, _ body: @escaping () throws -> Next, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> where Next.T == T {
        let handle = { (error: any Error) throws -> Next? in error as? E == only ? try body() : nil }
        return recoverSome(handle, file, line)
    }

    /// The common part of the forms with `only`. `body` returns `nil` for an error that it does not handle.
    @inlinable @inline(__always)
    func recoverSome<Next: Thenable>(
        _ body: @escaping (any Error) throws -> Next?, _ file: StaticString, _ line: UInt
    ) -> Promise<T> where Next.T == T {
        let source = asPromise().core
        let child = source.derive(RecoverSome(body))
        return Promise(child.traced("recover", after: source, Promise<T>.self, file, line))
    }
}

extension Catchable where T == Void {
    /// Handles an error of type `only`.
    /// - Parameters:
    ///   - only: the type of the errors to handle. All other outcomes skip `body`.
    ///   - policy: whether the handler sees errors that mean "cancelled"; by default `conf.catchPolicy`.
    ///   - body: called with the error, in a job of this thread's loop.
    /// - Returns: a promise that is fulfilled after a success and after `body`. Rejected with the error that `body`
    ///   throws, or with one that it does not see.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func recover<E: Error>(
        only: E.Type, policy: CatchPolicy = conf.catchPolicy, _ body: @escaping (E) throws -> Void,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        let handle = { (error: any Error) throws -> Promise<Void>? in
            guard let match = policy.match(error, only) else { return nil }
            try body(match)
            return .value
        }
        return recoverSome(handle, file, line)
    }

    /// Handles an error equal to `only`.
    /// - Parameters:
    ///   - only: the error to handle, whatever the policy for cancellations. All other outcomes skip `body`.
    ///   - body: called in a job of this thread's loop.
    /// - Returns: a promise that is fulfilled after a success and after `body`. Rejected with the error that `body`
    ///   throws, or with another error of this promise.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func recover<E: Error & Equatable>(
        only: E, _ body: @escaping () throws -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        let handle = { (error: any Error) throws -> Promise<Void>? in
            guard error as? E == only else { return nil }
            try body()
            return .value
        }
        return recoverSome(handle, file, line)
    }
}

@usableFromInline
struct RecoverSome<Next: Thenable>: Operation {
    @usableFromInline typealias Input = Next.T
    @usableFromInline typealias Output = Next.T
    /// Returns `nil` for an error that it does not handle.
    @usableFromInline let body: (any Error) throws -> Next?

    @inlinable init(_ body: @escaping (any Error) throws -> Next?) { self.body = body }

    @inlinable @inline(__always)
    func run(_ source: Source<Next.T>, _ core: PromiseCore) {
        guard !source.isFulfilled else { return core.finish(as: source) }
        do {
            guard let next = try body(source.error) else { return core.finish(rejectedAs: source.reference) }
            core.finish(following: next.asPromise().core, as: Next.T.self)
        } catch { core.finish(throwing: error) }
    }
}
