import Reactor

// The operators on errors and on any outcome with `on:`.

extension Thenable where T: Sendable {
    /// Calls `body` with the outcome on `dispatcher`, and passes the outcome on.
    /// - Parameters:
    ///   - dispatcher: where `body` runs; `nil` for inline.
    ///   - body: called with the outcome, which may be a cancellation of the chain. It is not called if the dispatcher
    ///     refuses the job or releases it without running it; see `map(on:)`.
    /// - Returns: a promise that settles as this one, once `body` has returned.
    public func tap(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (Result<T, any Error>) -> Void,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> { tap("tap", on: dispatcher, body, file, line) }

    func tap(
        _ operation: StaticString, on dispatcher: (any Dispatcher)?,
        _ body: @escaping @Sendable (Result<T, any Error>) -> Void, _ file: StaticString, _ line: UInt
    ) -> Promise<T> {
        Promise(
            dispatched(operation, on: dispatcher, as: Promise<T>.self, cleansUp: true, file, line) { source in
                let (result, outcome) = (source.result, DispatchedPromise.Outcome.same(source))
                return .dispatch(
                    DispatchedPromise.Work {
                        body(result)
                        return outcome
                    })
            })
    }
}

extension Catchable where T: Sendable {
    /// Calls `body` on `dispatcher` when the promise settles or is cancelled, and then passes the outcome on.
    ///
    /// `body` is called once, unless the dispatcher refuses the job or releases it without running it; see `map(on:)`.
    /// - Returns: a promise that settles as this one, once `body` has returned.
    public func ensure(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable () -> Void,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> { tap("ensure", on: dispatcher, { _ in body() }, file, line) }

    /// Calls `body` on `dispatcher` when the promise settles or is cancelled, waits for the guarantee that `body`
    /// returns, and then passes the outcome on.
    ///
    /// This thread's loop begins the cleanup and passes the outcome on. If the dispatcher refuses the job or releases it
    /// without running it, that is logged, and the outcome does not wait.
    /// - Returns: a promise that settles as this one, once the guarantee of `body` is fulfilled.
    @available(*, noasync, message: "no loop passes the outcome on in an async function; use ensure(on:)")
    public func ensureThen(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable () -> Guarantee<Void>,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> {
        ensureThen({ Guarantee.value.then(on: dispatcher, body, file: file, line: line) }, file: file, line: line)
    }

    /// Ends a chain: calls `body` on `dispatcher` with the error, if there is one and `policy` lets the handler see it.
    /// See `map(on:)`.
    ///
    /// If the dispatcher refuses the job or releases it without running it, the error is an unhandled rejection.
    /// - Returns: a finalizer, for a `finally` that always runs, on the thread that calls `finally`.
    @discardableResult
    public func `catch`(
        on dispatcher: (any Dispatcher)?, policy: CatchPolicy = conf.catchPolicy,
        _ body: @escaping @Sendable (any Error) -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Finalizer {
        Finalizer(
            dispatched("catch", on: dispatcher, as: Promise<Void>.self, file, line) { source in
                guard !source.isFulfilled, policy.catches(source.error) else { return .pass(.value(())) }
                let (error, core) = (source.error, source.core)
                let handle = { () -> DispatchedPromise.Outcome in
                    body(error)
                    return .value(())
                }
                let report = { () -> DispatchedPromise.Outcome in
                    Reports.unhandled(error, core.provenance(callSite: core.payload.callSite))
                    return .value(())
                }
                return .dispatch(DispatchedPromise.Work(run: handle, otherwise: report))
            })
    }

    /// Replaces a rejection with the promise that `body` returns for the error, on `dispatcher`. See `map(on:)` and
    /// `then(on:)`.
    /// - Parameters:
    ///   - dispatcher: where `body` runs; `nil` for inline.
    ///   - policy: whether `body` sees errors that mean "cancelled"; by default `conf.catchPolicy`. An error that it
    ///     does not see rejects the result.
    ///   - body: called with the error. A value skips it.
    /// - Returns: a promise of the value, or one that settles as the promise that `body` returns. Rejected as that of
    ///   `map(on:)` if `body` throws or does not run.
    public func recover<Next: Thenable>(
        on dispatcher: (any Dispatcher)?, policy: CatchPolicy = conf.catchPolicy,
        _ body: @escaping @Sendable (any Error) throws -> Next, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> where Next.T == T {
        Promise(
            dispatched("recover", on: dispatcher, as: Promise<T>.self, file, line) {
                .ofError($0, policy) { .following(try body($0).asPromise().core) }
            })
    }

    /// Replaces every rejection, including a cancellation, with the guarantee that `body` returns, on `dispatcher`.
    ///
    /// Traps if `body` returns the guarantee that this call returns: a guarantee has no error to report that with.
    /// - Returns: a guarantee of the value, or of the value of the guarantee that `body` returns. If the dispatcher
    ///   refuses the job or releases it without running it, the guarantee is abandoned, and that is logged.
    @discardableResult
    public func recover(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (any Error) -> Guarantee<T>,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<T> {
        Guarantee(
            dispatched("recover", on: dispatcher, as: Guarantee<T>.self, isGuarantee: true, file, line) {
                .ofError($0, .allErrors) { .following(body($0).core) }
            })
    }
}

extension Catchable where T == Void {
    /// Handles every error on `dispatcher`, including a cancellation.
    /// - Returns: a guarantee that is fulfilled after a success and after `body`: the rest of the chain cannot fail. It
    ///   is abandoned, and that is logged, if the dispatcher does not run the job.
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
    /// - Returns: a promise that is fulfilled after a success and after `body`. Rejected with an error that `body` does
    ///   not see, and as that of `map(on:)` if `body` throws or does not run.
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

extension Finalizer {
    /// Calls `body` on `dispatcher` when the chain has ended; see `finally`.
    ///
    /// `body` is called once, unless the dispatcher refuses the job or releases it without running it; that is logged.
    public func finally(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable () -> Void, file: StaticString = #fileID,
        line: UInt = #line
    ) { _ = end.map("finally", on: dispatcher, body, file, line) }
}

extension CascadingFinalizer {
    /// Calls `body` on `dispatcher` when the chain so far has ended; see `finally`, and `Finalizer.finally(on:)`.
    @available(*, noasync, message: "no loop sees the end of the chain in an async function; end it with a catch(on:)")
    public func finally(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable () -> Void, file: StaticString = #fileID,
        line: UInt = #line
    ) { _ = watchEnd({}, file, line).map("finally", on: dispatcher, body, file, line) }
}

extension DispatchedPromise.Step {
    /// For a closure that is called with an error that `policy` lets it see.
    static func ofError<Value>(
        _ source: Source<Value>, _ policy: CatchPolicy,
        _ body: @escaping (any Error) throws -> DispatchedPromise.Outcome
    ) -> Self {
        guard !source.isFulfilled, policy.catches(source.error) else { return .pass(.same(source)) }
        let error = source.error
        return .dispatch(DispatchedPromise.Work { try body(error) })
    }
}
