extension Catchable {
    /// Replaces a rejection with an error of type `only` with the promise that `body` returns, if `policy` lets `body`
    /// see the error. All other outcomes skip `body`.
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

    /// Replaces a rejection with an error equal to `only`, whatever the policy for cancellations, with the promise that
    /// `body` returns. All other outcomes skip `body`.
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
    /// Handles an error of type `only`, if `policy` lets `body` see it. An error that `body` throws takes its place.
    /// All other outcomes skip `body`.
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

    /// Handles an error equal to `only`, whatever the policy for cancellations. An error that `body` throws takes its
    /// place. All other outcomes skip `body`.
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
