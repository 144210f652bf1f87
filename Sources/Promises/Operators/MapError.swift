extension Catchable {
    /// Replaces the error of a rejection with the error that `body` returns or throws.
    /// - Parameters:
    ///   - policy: whether `body` sees errors that mean "cancelled"; by default `conf.catchPolicy`. It is skipped for
    ///     an error that it does not see.
    ///   - body: called with the error, in a job of this thread's loop. A value skips it.
    /// - Returns: a promise of the value, or one that is rejected with the error that `body` returns or throws.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func mapError(
        policy: CatchPolicy = conf.catchPolicy, _ body: @escaping (any Error) throws -> any Error,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> { derived("mapError", MapError<T>(policy, body), file, line) }
}

@usableFromInline
struct MapError<T>: Operation {
    @usableFromInline typealias Output = T
    @usableFromInline let policy: CatchPolicy
    @usableFromInline let body: (any Error) throws -> any Error

    @inlinable
    init(_ policy: CatchPolicy, _ body: @escaping (any Error) throws -> any Error) {
        self.policy = policy
        self.body = body
    }

    @inlinable @inline(__always)
    func run(_ source: Source<T>, _ core: PromiseCore) {
        guard !source.isFulfilled, policy.catches(source.error) else { return core.finish(as: source) }
        do {
            core.finish(throwing: try body(source.error), at: source.callSite)
        } catch { core.finish(throwing: error, at: source.callSite) }
    }
}
