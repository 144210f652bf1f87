extension Catchable {
    /// Turns a rejection into whatever `body` returns for the error: another promise of the value. A value passes
    /// `body` by, and so does an error that `policy` does not let it see.
    @inlinable
    public func recover<Next: Thenable>(
        policy: CatchPolicy = conf.catchPolicy, _ body: @escaping (any Error) throws -> Next
    ) -> Promise<T> where Next.T == T {
        let child = Core(Recover(policy, body))
        asPromise().core.attach(child)
        return Promise(child)
    }

    /// Turns every rejection, cancellation among them, into a guarantee: from here on the chain cannot fail. Traps if
    /// `body` returns that very guarantee: it has no error to say so with.
    @inlinable
    @discardableResult
    public func recover(_ body: @escaping (any Error) -> Guarantee<T>) -> Guarantee<T> {
        let child = Core(RecoverAlways(body))
        asPromise().core.attach(child)
        return Guarantee(child)
    }
}

extension Catchable where T == Void {
    /// Handles every error, cancellation among them: from here on the chain cannot fail.
    @inlinable
    @discardableResult
    public func recover(_ body: @escaping (any Error) -> Void) -> Guarantee<Void> {
        recover { error -> Guarantee<Void> in
            body(error)
            return .value
        }
    }

    /// Handles an error that `policy` lets it see, or throws one in its place.
    @inlinable
    public func recover(
        policy: CatchPolicy = conf.catchPolicy, _ body: @escaping (any Error) throws -> Void
    ) -> Promise<Void> {
        recover(policy: policy) { error -> Promise<Void> in
            try body(error)
            return .value
        }
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
    func run(_ source: Source<Next.T>, _ core: Core) {
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
    func run(_ source: Source<T>, _ core: Core) {
        guard !source.isFulfilled else { return core.finish(as: source) }
        core.finish(followingGuarantee: body(source.error).core, as: T.self)
    }
}
