extension Catchable {
    /// Calls `body` with the error, if there is one, and passes the outcome on. The error does not count as handled.
    /// - Parameters:
    ///   - policy: whether `body` sees errors that mean "cancelled"; by default `conf.catchPolicy`. Under `.allErrors`
    ///     it sees all cancellations, including those of the chain above or below.
    ///   - body: called with the error, in a job of this thread's loop.
    /// - Returns: a promise that settles as this one, once `body` has returned.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func tapError(
        policy: CatchPolicy = conf.catchPolicy, _ body: @escaping (any Error) -> Void, file: StaticString = #fileID,
        line: UInt = #line
    ) -> Promise<T> {
        let role: CoreRole = policy == .allErrors ? .runsWhenCancelled : []
        return derived("tapError", TapError<T>(policy, body), role: role, file, line)
    }
}

@usableFromInline
struct TapError<T>: Operation {
    @usableFromInline typealias Output = T
    @usableFromInline let policy: CatchPolicy
    @usableFromInline let body: (any Error) -> Void

    @inlinable
    init(_ policy: CatchPolicy, _ body: @escaping (any Error) -> Void) {
        self.policy = policy
        self.body = body
    }

    @inlinable @inline(__always)
    func run(_ source: Source<T>, _ core: PromiseCore) {
        if !source.isFulfilled {
            let error = source.error
            if policy.catches(error) { body(error) }
        }
        core.finish(as: source)
    }
}
