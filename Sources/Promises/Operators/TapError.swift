extension Catchable {
    /// Calls `body` with the error, if any, and passes the outcome on. The error does not count as handled.
    /// - Parameters:
    ///   - policy: decides whether `body` sees cancellations, from above or below.
    ///   - body: called in a job on this thread's loop.
    /// - Returns: a promise that settles like this one, once `body` has returned.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func tapError(
        policy: CatchPolicy = conf.catchPolicy, _ body: @escaping (any Error) -> Void, file: StaticString = #fileID,
        line: UInt = #line
    ) -> Promise<T> {
        let see = { (result: Result<T, any Error>) in
            if case .failure(let error) = result, policy.catches(error) { body(error) }
        }
        return derived("tapError", Tap(see), role: .observes, file, line)
    }
}
