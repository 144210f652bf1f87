import Reactor

extension Thenable where T: Sendable {
    /// Transforms the value on `dispatcher`: another loop's `remote`, a `ThreadPool`, or your own dispatcher.
    ///
    /// ```swift
    /// image.map(on: ThreadPool.shared) { try resize($0) }.done { show($0) }
    /// ```
    ///
    /// Rejected with the error that `body` throws, with the error by which `dispatcher` refuses the job, or with
    /// `PromiseError.abandoned` if `dispatcher` releases the job without running it.
    ///
    /// A rejection of this promise skips `body` and the dispatcher. The result's handlers run on the threads that
    /// attached them. A cancellation releases `body` without calling it. A `body` that has begun cannot be stopped: its
    /// result is discarded, and the promise is rejected when it returns.
    ///
    /// With `nil` as the dispatcher, `body` runs inline: inside the call that settles this promise, on that thread, or
    /// at once if this promise has settled. Inline handlers run one after another, never inside each other. Jobs that
    /// they dispatch start after they have returned.
    /// - Parameters:
    ///   - dispatcher: runs `body`; `nil` for inline.
    ///   - body: called in one of the dispatcher's jobs.
    public func map<U: Sendable>(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T) throws -> U,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<U> { map("map", on: dispatcher, body, file, line) }

    /// Calls `body` with the value on `dispatcher`, and waits for the promise that it returns; see `map(on:)`.
    ///
    /// Unlike with `then`, the promises are not linked, so an endless recursion takes memory. Unless `dispatcher` is a
    /// loop's `remote`, `body` may attach handlers only with `on:`, because nothing drives the loop of a pool's thread.
    /// - Returns: a promise with the outcome of the promise of `body`. Rejected like `map(on:)` if `body` throws or
    ///   does not run.
    public func then<Next: Thenable>(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T) throws -> Next,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Next.T> where Next.T: Sendable {
        Promise(
            dispatched("then", on: dispatcher, as: Promise<Next.T>.self, file, line) {
                .ofValue($0) { .following(try body($0).asPromise().core) }
            })
    }

    /// Overload for closures with several statements that return `.value(…)`, or mix promises and guarantees.
    @_disfavoredOverload
    public func then<U: Sendable>(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T) throws -> any Thenable<U>,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<U> {
        let unwrap: @Sendable (T) throws -> Promise<U> = { value in try body(value).asPromise() }
        return then(on: dispatcher, unwrap, file: file, line: line)
    }

    /// Calls `body` with the outcome on `dispatcher`, and passes the outcome on, even a cancellation of the chain; see
    /// `map(on:)`. Passes it on without `body` if the dispatcher does not run the job.
    public func tap(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (Result<T, any Error>) -> Void,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> {
        Promise(
            dispatched("tap", on: dispatcher, as: Promise<T>.self, cleansUp: true, file, line) { source in
                let (result, outcome) = (source.result, DispatchedPromise.Outcome.same(source))
                return .dispatch(
                    DispatchedPromise.Work {
                        body(result)
                        return outcome
                    })
            })
    }

    package func map<U: Sendable>(
        _ name: StaticString, on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T) throws -> U,
        _ file: StaticString, _ line: UInt
    ) -> Promise<U> {
        Promise(
            dispatched(name, on: dispatcher, as: Promise<U>.self, file, line) {
                .ofValue($0) { .value(try body($0)) }
            })
    }
}

extension Catchable where T: Sendable {
    /// Ends a chain: calls `body` on `dispatcher` with the error, unless `policy` excludes it; see `map(on:)`.
    ///
    /// If the dispatcher releases the job without running it, the error becomes an unhandled rejection. If it refuses
    /// the job, both the error and the refusal do.
    /// - Returns: a finalizer, for a `finally` that always runs, on the thread that calls `finally`.
    @discardableResult
    public func `catch`(
        on dispatcher: (any Dispatcher)?, policy: CatchPolicy = conf.catchPolicy,
        _ body: @escaping @Sendable (any Error) -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Finalizer {
        Finalizer(
            dispatched(
                "catch", on: dispatcher, as: Promise<Void>.self, cleansUp: policy == .allErrors, file, line
            ) { source in
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

    /// Replaces a rejection with the promise that `body` returns for the error, on `dispatcher`; see `map(on:)` and
    /// `then(on:)`. An error that `policy` hides from `body` rejects the result.
    /// - Returns: a promise with the value or, after a rejection, with the outcome of the promise of `body`. Rejected
    ///   like `map(on:)`.
    public func recover(
        on dispatcher: (any Dispatcher)?, policy: CatchPolicy = conf.catchPolicy,
        _ body: @escaping @Sendable (any Error) throws -> any Thenable<T>, file: StaticString = #fileID,
        line: UInt = #line
    ) -> Promise<T> {
        Promise(
            dispatched("recover", on: dispatcher, as: Promise<T>.self, file, line) { source in
                guard !source.isFulfilled, policy.catches(source.error) else { return .pass(.same(source)) }
                let error = source.error
                return .dispatch(DispatchedPromise.Work { .following(try body(error).asPromise().core) })
            })
    }
}

extension Promise where T: Sendable {
    /// Makes a promise that settles with the result of `body`, which runs on `dispatcher`.
    ///
    /// ```swift
    /// let digest = Promise(on: .shared) { try hash(contentsOf: path) }
    /// ```
    ///
    /// For errors and cancellation, see `map(on:)`.
    /// - Parameters:
    ///   - dispatcher: runs `body`: a pool, or a loop's `remote`; `nil` for this thread, at once.
    ///   - body: called once, in one of the dispatcher's jobs.
    public init(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable () throws -> T, file: StaticString = #fileID,
        line: UInt = #line
    ) { self = Promise<Void>.value.map(Trace.Step.making, on: dispatcher, body, file, line) }
}

extension Guarantee where T: Sendable {
    /// Makes a guarantee of the result of `body`, which runs on `dispatcher`. If `body` does not run, see
    /// `Guarantee.map(on:)`.
    public init(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable () -> T, file: StaticString = #fileID,
        line: UInt = #line
    ) { self = Guarantee<Void>.value.map(Trace.Step.making, on: dispatcher, body, file, line) }

    /// Transforms the value on `dispatcher`; see `Promise.map(on:)`.
    /// - Returns: a guarantee of the result. Abandoned if the dispatcher does not run the job, since a guarantee has no
    ///   error. A refused job is logged as an unhandled rejection, a released job as an abandoned guarantee.
    public func map<U: Sendable>(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T) -> U,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<U> { map("map", on: dispatcher, body, file, line) }

    /// Makes a guarantee that is never fulfilled if the promise is rejected.
    package init(certain promise: Promise<T>) { self.init(promise.core) }

    func map<U: Sendable>(
        _ name: StaticString, on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T) -> U,
        _ file: StaticString, _ line: UInt
    ) -> Guarantee<U> {
        Guarantee<U>(
            dispatched(name, on: dispatcher, as: Guarantee<U>.self, isGuarantee: true, file, line) {
                .ofValue($0) { .value(body($0)) }
            })
    }
}

extension DispatchedPromise.DispatchStep {
    static func ofValue<Value>(
        _ source: Source<Value>, _ body: @escaping (Value) throws -> DispatchedPromise.Outcome
    ) -> Self {
        guard source.isFulfilled else { return .pass(.same(source)) }
        let value = source.value
        return .dispatch(DispatchedPromise.Work { try body(value) })
    }
}
