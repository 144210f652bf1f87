extension Catchable {
    /// Ends a chain: calls `body` with the error, unless `policy` excludes it.
    ///
    /// ```swift
    /// connect(to: address)
    ///     .then { connection in connection.write("ping") }
    ///     .catch { error in print("no ping:", error) }
    /// ```
    ///
    /// A cancellation is ignored without a report unless the policy is `.allErrors`.
    /// - Parameters:
    ///   - policy: decides whether `body` sees cancellations.
    ///   - body: runs as a job on this thread's loop.
    /// - Returns: a finalizer, for a `finally` that always runs.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    @discardableResult
    public func `catch`(
        policy: CatchPolicy = conf.catchPolicy, _ body: consuming @escaping (any Error) -> Void,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Finalizer {
        Finalizer(derived("catch", Catch<T>(policy, body), file, line).core)
    }
}

/// The end of a chain; see `catch`.
public struct Finalizer {
    private let core: PromiseCore

    @usableFromInline
    init(_ core: PromiseCore) { self.core = core }

    var end: Guarantee<Void> { Guarantee(core) }

    /// Calls `body` when the chain has ended, with any outcome. May be called several times.
    ///
    /// ```swift
    /// fetch(url).done { show($0) }.catch { print($0) }.finally { print("over") }
    /// ```
    ///
    /// - Parameter body: called once, in a job on this thread's loop.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    public func finally(_ body: @escaping () -> Void, file: StaticString = #fileID, line: UInt = #line) {
        _ = end.derived("finally", Ensure<Void>(body), file, line)
    }

    /// Cancels the promise on which `catch` was called, unless another handler waits for it, and so on up to the work;
    /// see `Promise.cancel`.
    ///
    /// The `catch` handler sees the cancellation only if its policy is `.allErrors`. `finally` always runs.
    public func cancel() { core.cancel() }
}

@usableFromInline
struct Catch<T>: Operation {
    @usableFromInline let policy: CatchPolicy
    @usableFromInline let body: (any Error) -> Void

    @inlinable
    init(_ policy: CatchPolicy, _ body: consuming @escaping (any Error) -> Void) {
        self.policy = policy
        self.body = body
    }

    @inlinable @inline(__always)
    func run(_ source: Source<T>, _ core: PromiseCore) {
        if !source.isFulfilled {
            let error = source.error
            if policy.catches(error) { body(error) }
        }
        core.finish(())
    }
}
