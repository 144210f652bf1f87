import Reactor

extension Catchable where T: Sendable {
    /// Ends a chain: calls `body` on `dispatcher` with the error, if there is one and `policy` lets the handler see it.
    /// See `map(on:)`.
    /// - Parameters:
    ///   - dispatcher: where `body` runs; `nil` for inline.
    ///   - policy: whether `body` sees errors that mean "cancelled"; by default `conf.catchPolicy`.
    ///   - body: the handler.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a finalizer, for a `finally` that always runs, on the thread that calls `finally`.
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
