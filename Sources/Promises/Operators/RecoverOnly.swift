extension Catchable {
    /// Turns a rejection with an error of type `only`, if `policy` lets it see it, into whatever `body` returns for the
    /// error: another promise of the value. Other outcomes pass `body` by.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func recover<E: Error, Next: Thenable>(
        only: E.Type, policy: CatchPolicy = conf.catchPolicy, _ body: @escaping (E) throws -> Next,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> where Next.T == T {
        let handle = { (error: any Error) throws -> Next? in try policy.match(error, only).map(body) }
        return recoverSome(handle, file, line)
    }

    /// Turns a rejection with an error that is equal to `only`, whatever the policy for cancellations, into whatever `body`
    /// returns: another promise of the value. Other outcomes pass `body` by.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func recover<E: Error & Equatable, Next: Thenable>(
        only: E, _ body: @escaping () throws -> Next, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> where Next.T == T {
        let handle = { (error: any Error) throws -> Next? in error as? E == only ? try body() : nil }
        return recoverSome(handle, file, line)
    }

    /// What these have in common.
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
    /// Handles an error of type `only` if `policy` lets it see it, or throws one in its place. Other outcomes pass `body` by.
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

    /// Handles an error that is equal to `only`, whatever the policy for cancellations, or throws one in its place. Other
    /// outcomes pass `body` by.
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
    /// Gives nil for an error that is not its own.
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
