import Reactor

extension Catchable where T: Sendable {
    /// Calls `body` with the error on `dispatcher`, if there is one and `policy` lets it see it: the end of a chain. See
    /// `map(on:)`.
    /// - Returns: a finalizer, for a `finally` that runs in any case; on the thread that calls it.
    @inlinable @inline(__always)
    @discardableResult
    public func `catch`(
        on dispatcher: (any Dispatcher)?, policy: CatchPolicy = conf.catchPolicy,
        _ body: @escaping @Sendable (any Error) -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Finalizer {
        Finalizer(
            asPromise().core.derive(
                CatchOn<T>(policy, body), on: dispatcher, fails: .beforeAnEnd, "catch", Promise<Void>.self, file, line))
    }
}

@usableFromInline
struct CatchOn<T>: DispatchedOperation {
    @usableFromInline typealias Input = T
    @usableFromInline typealias Output = Void
    @usableFromInline let policy: CatchPolicy
    @usableFromInline let body: @Sendable (any Error) -> Void
    @usableFromInline var interest: DispatchedNode.Interest { .errors(policy) }

    @inlinable
    init(_ policy: CatchPolicy, _ body: @escaping @Sendable (any Error) -> Void) {
        self.policy = policy
        self.body = body
    }

    @inlinable
    func run(_ source: Source<T>) -> DispatchedOutcome<Void> {
        if !source.isFulfilled {
            let error = source.error
            if policy.catches(error) { body(error) }
        }
        return .value(())
    }
}
