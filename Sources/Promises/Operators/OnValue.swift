import Reactor

// The operators on values with `on:`.

extension Thenable where T: Sendable {
    /// Transforms the value on `dispatcher`: another loop's `remote`, a `ThreadPool`, or a dispatcher of your own.
    ///
    /// ```swift
    /// image.map(on: ThreadPool.shared) { try resize($0) }.done { show($0) }
    /// ```
    ///
    /// The promise is rejected with:
    /// - the error that `body` throws;
    /// - the error that `dispatcher` throws when it refuses the job;
    /// - `PromiseError.abandoned` if `dispatcher` releases the job without running it.
    ///
    /// A rejection of this promise skips both `body` and the dispatcher. The handlers of the result run on the threads
    /// that attached them, as with all promises. If the result is cancelled before `body` has begun, `body` is released
    /// without being called. If `body` is running, it continues, and its result is discarded.
    ///
    /// With `nil` in place of a dispatcher, `body` runs inline: on the thread that settles this promise, inside the
    /// settling call, or immediately if this promise has settled. Inline handlers run one after another, never inside
    /// each other. Jobs that they give to a dispatcher start after they have returned.
    /// - Parameters:
    ///   - dispatcher: where `body` runs; `nil` for inline.
    ///   - body: called with the value, in a job of the dispatcher.
    /// - Returns: a promise of what `body` returns, rejected as above.
    public func map<U: Sendable>(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T) throws -> U,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<U> { map("map", on: dispatcher, body, file, line) }

    /// Transforms the value, which must have a result, on `dispatcher`. See `map(on:)`.
    /// - Returns: a promise of the result. Rejected with `PromiseError.compactMap` if `body` returns `nil`; otherwise
    ///   as that of `map(on:)`.
    public func compactMap<U: Sendable>(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T) throws -> U?,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<U> {
        let unwrap: @Sendable (T) throws -> U = { value in
            if let result = try body(value) { return result }
            throw PromiseError.compactMap(value: PromiseError.shown(value), type: "\(U.self)")
        }
        return map("compactMap", on: dispatcher, unwrap, file, line)
    }

    /// Calls `body` with the value on `dispatcher`. See `map(on:)`.
    /// - Returns: a promise without a value, fulfilled when `body` has returned, and rejected as that of `map(on:)`.
    public func done(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T) throws -> Void,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> { map("done", on: dispatcher, body, file, line) }

    /// Calls `body` with the value on `dispatcher`, and passes the value on. See `map(on:)`.
    /// - Returns: a promise of the value, fulfilled when `body` has returned, and rejected as that of `map(on:)`.
    public func get(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T) throws -> Void,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> {
        let passOn: @Sendable (T) throws -> T = { value in
            try body(value)
            return value
        }
        return map("get", on: dispatcher, passOn, file, line)
    }

    /// Calls `body` with the value on `dispatcher`, and waits for the promise that `body` returns. See `map(on:)`.
    ///
    /// Unlike those of `then`, the promises of this operator are settled one by one, and not linked. An endless
    /// recursion through it therefore does not run in constant memory.
    /// - Parameters:
    ///   - dispatcher: where `body` runs; `nil` for inline.
    ///   - body: called with the value. It attaches handlers only with `on:`, unless `dispatcher` is a loop's `remote`:
    ///     the loop of a pool's thread is never driven.
    /// - Returns: a promise that settles as the one that `body` returns. Rejected as that of `map(on:)` if `body`
    ///   throws or does not run.
    public func then<Next: Thenable>(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T) throws -> Next,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Next.T> where Next.T: Sendable {
        Promise(
            dispatched("then", on: dispatcher, as: Promise<Next.T>.self, file, line) {
                .ofValue($0) { .following(try body($0).asPromise().core) }
            })
    }

    /// The form for closures of several statements, of which one may be `return .value(…)`.
    @_disfavoredOverload
    public func then<U: Sendable>(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T) throws -> Promise<U>,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<U> {
        Promise(
            dispatched("then", on: dispatcher, as: Promise<U>.self, file, line) {
                .ofValue($0) { .following(try body($0).core) }
            })
    }

    func map<U: Sendable>(
        _ operation: StaticString, on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T) throws -> U,
        _ file: StaticString, _ line: UInt
    ) -> Promise<U> {
        Promise(
            dispatched(operation, on: dispatcher, as: Promise<U>.self, file, line) {
                .ofValue($0) { .value(try body($0)) }
            })
    }
}

extension Promise where T: Sendable {
    /// A promise that settles as `body` does, which runs on `dispatcher`.
    ///
    /// ```swift
    /// let digest = Promise(on: .shared) { try hash(contentsOf: path) }
    /// ```
    ///
    /// Errors and cancellation are as for `map(on:)`: if the promise is cancelled before `body` has begun, `body` is
    /// released without being called.
    /// - Parameters:
    ///   - dispatcher: where `body` runs: a pool, or a loop's `remote`; `nil` for this thread, at once.
    ///   - body: called once, as a job of the dispatcher.
    public init(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable () throws -> T, file: StaticString = #fileID,
        line: UInt = #line
    ) { self = Promise<Void>.value.map(Trace.Step.making, on: dispatcher, body, file, line) }
}

extension Guarantee where T: Sendable {
    /// A guarantee of the result of `body`, which runs on `dispatcher`; see `Promise.init(on:_:)`.
    ///
    /// As with `Guarantee.map(on:)`, it is abandoned if the dispatcher refuses the job or releases it without running it.
    public init(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable () -> T, file: StaticString = #fileID,
        line: UInt = #line
    ) { self = Guarantee<Void>.value.map(Trace.Step.making, on: dispatcher, body, file, line) }

    /// Transforms the value on `dispatcher`; see `Promise.map(on:)`.
    /// - Returns: a guarantee of what `body` returns. A guarantee has no error to report that the dispatcher has
    ///   refused the job or released it without running it. In these cases it is abandoned, and that is logged.
    public func map<U: Sendable>(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T) -> U,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<U> { map("map", on: dispatcher, body, file, line) }

    /// Calls `body` with the value on `dispatcher`. See `map(on:)`.
    /// - Returns: a guarantee without a value, fulfilled when `body` has returned.
    @discardableResult
    public func done(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T) -> Void,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<Void> { map("done", on: dispatcher, body, file, line) }

    /// Calls `body` with the value on `dispatcher`, and passes the value on. See `map(on:)`.
    /// - Returns: a guarantee of the value, fulfilled when `body` has returned.
    @discardableResult
    public func get(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T) -> Void,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<T> {
        let passOn: @Sendable (T) -> T = { value in
            body(value)
            return value
        }
        return map("get", on: dispatcher, passOn, file, line)
    }

    /// Calls `body` with the value on `dispatcher`, and waits for the guarantee that `body` returns. See `map(on:)`.
    ///
    /// Traps if `body` returns the guarantee that this call returns: a guarantee has no error to report that with.
    /// - Returns: a guarantee of the value of the guarantee that `body` returns. It is abandoned as that of `map(on:)`.
    @discardableResult
    public func then<Next: Sendable>(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T) -> Guarantee<Next>,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<Next> {
        Guarantee<Next>(
            dispatched("then", on: dispatcher, as: Guarantee<Next>.self, isGuarantee: true, file, line) {
                .ofValue($0) { .following(body($0).core) }
            })
    }

    func map<U: Sendable>(
        _ operation: StaticString, on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T) -> U,
        _ file: StaticString, _ line: UInt
    ) -> Guarantee<U> {
        Guarantee<U>(
            dispatched(operation, on: dispatcher, as: Guarantee<U>.self, isGuarantee: true, file, line) {
                .ofValue($0) { .value(body($0)) }
            })
    }
}

extension DispatchedPromise.Step {
    /// For a closure that is called with the value.
    static func ofValue<Value>(
        _ source: Source<Value>, _ body: @escaping (Value) throws -> DispatchedPromise.Outcome
    ) -> Self {
        guard source.isFulfilled else { return .pass(.same(source)) }
        let value = source.value
        return .dispatch(DispatchedPromise.Work { try body(value) })
    }
}
