import Reactor

extension Catchable where T: Sendable {
    /// Replaces a rejection with the promise that `body` returns for the error, on `dispatcher`. See `map(on:)` and
    /// `then(on:)`.
    /// - Parameters:
    ///   - dispatcher: where `body` runs; `nil` for inline.
    ///   - policy: whether `body` sees errors that mean "cancelled"; by default `conf.catchPolicy`. An error that it
    ///     does not see rejects the result.
    ///   - body: called with the error. A value skips it.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a promise of the value, or one that settles as the promise that `body` returns. Rejected as that of
    ///   `map(on:)` if `body` throws or does not run.
    @inlinable @inline(__always)
    public func recover<Next: Thenable>(
        on dispatcher: (any Dispatcher)?, policy: CatchPolicy = conf.catchPolicy,
        _ body: @escaping @Sendable (any Error) throws -> Next, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> where Next.T == T {
        Promise(
            asPromise().core.derive(
                RecoverOn(policy, body), on: dispatcher, "recover", Promise<T>.self, file, line))
    }

    /// Replaces every rejection, including a cancellation, with the guarantee that `body` returns, on `dispatcher`.
    ///
    /// Traps if `body` returns the guarantee that this call returns: a guarantee has no error to report that with.
    /// - Parameters:
    ///   - dispatcher: where `body` runs; `nil` for inline.
    ///   - body: called with the error. A value skips it.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a guarantee of the value, or of the value of the guarantee that `body` returns. If the dispatcher
    ///   refuses the job or releases it without running it, the guarantee is abandoned, and that is logged.
    @inlinable @inline(__always)
    @discardableResult
    public func recover(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (any Error) -> Guarantee<T>,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<T> {
        Guarantee(
            asPromise().core.derive(
                RecoverAlwaysOn(body), on: dispatcher, fails: .inSilence, "recover", Guarantee<T>.self, file, line))
    }
}

extension Catchable where T == Void {
    /// Handles every error on `dispatcher`, including a cancellation.
    /// - Parameters:
    ///   - dispatcher: where `body` runs; `nil` for inline.
    ///   - body: called with the error. A success skips it.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a guarantee that is fulfilled after a success and after `body`: the rest of the chain cannot fail. It
    ///   is abandoned, and that is logged, if the dispatcher does not run the job.
    @inlinable @inline(__always)
    @discardableResult
    public func recover(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (any Error) -> Void,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<Void> {
        let handle: @Sendable (any Error) -> Guarantee<Void> = { error in
            body(error)
            return .value
        }
        return recover(on: dispatcher, handle, file: file, line: line)
    }

    /// Handles an error on `dispatcher`, if `policy` lets `body` see it.
    /// - Parameters:
    ///   - dispatcher: where `body` runs; `nil` for inline.
    ///   - policy: whether `body` sees errors that mean "cancelled"; by default `conf.catchPolicy`.
    ///   - body: called with the error. A success skips it.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a promise that is fulfilled after a success and after `body`. Rejected with an error that `body` does
    ///   not see, and as that of `map(on:)` if `body` throws or does not run.
    @inlinable @inline(__always)
    public func recover(
        on dispatcher: (any Dispatcher)?, policy: CatchPolicy = conf.catchPolicy,
        _ body: @escaping @Sendable (any Error) throws -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        let handle: @Sendable (any Error) throws -> Promise<Void> = { error in
            try body(error)
            return .value
        }
        return recover(on: dispatcher, policy: policy, handle, file: file, line: line)
    }
}

@usableFromInline
struct RecoverOn<Next: Thenable>: DispatchedOperation {
    @usableFromInline typealias Input = Next.T
    @usableFromInline typealias Output = Next.T
    @usableFromInline let policy: CatchPolicy
    @usableFromInline let body: @Sendable (any Error) throws -> Next
    @usableFromInline var interest: DispatchedNode.Interest { .errors(policy) }

    @inlinable
    init(_ policy: CatchPolicy, _ body: @escaping @Sendable (any Error) throws -> Next) {
        self.policy = policy
        self.body = body
    }

    @inlinable
    func run(_ source: Source<Next.T>) -> DispatchedOutcome<Next.T> {
        guard !source.isFulfilled, policy.catches(source.error) else { return .ofSource }
        do { return .following(try body(source.error).asPromise().core) } catch { return .error(error) }
    }
}

@usableFromInline
struct RecoverAlwaysOn<T>: DispatchedOperation {
    @usableFromInline typealias Input = T
    @usableFromInline typealias Output = T
    @usableFromInline let body: @Sendable (any Error) -> Guarantee<T>
    @usableFromInline var interest: DispatchedNode.Interest { .errors(.allErrors) }

    @inlinable init(_ body: @escaping @Sendable (any Error) -> Guarantee<T>) { self.body = body }

    @inlinable
    func run(_ source: Source<T>) -> DispatchedOutcome<T> {
        guard !source.isFulfilled else { return .ofSource }
        return .following(body(source.error).core)
    }
}
