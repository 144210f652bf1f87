import Reactor

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
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a promise of what `body` returns, rejected as above.
    @inlinable @inline(__always)
    public func map<U: Sendable>(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T) throws -> U,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<U> { map("map", on: dispatcher, body, file, line) }

    /// Calls `body` with the value on `dispatcher`. See `map(on:)`.
    /// - Parameters:
    ///   - dispatcher: where `body` runs; `nil` for inline.
    ///   - body: called with the value, in a job of the dispatcher.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a promise without a value, fulfilled when `body` has returned, and rejected as that of `map(on:)`.
    @inlinable @inline(__always)
    public func done(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T) throws -> Void,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> { map("done", on: dispatcher, body, file, line) }

    /// Calls `body` with the value on `dispatcher`, and passes the value on. See `map(on:)`.
    /// - Parameters:
    ///   - dispatcher: where `body` runs; `nil` for inline.
    ///   - body: called with the value, in a job of the dispatcher.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a promise of the value, fulfilled when `body` has returned, and rejected as that of `map(on:)`.
    @inlinable @inline(__always)
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

    /// The common part of the operators that transform the value.
    @inlinable @inline(__always)
    func map<U: Sendable>(
        _ operation: StaticString, on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T) throws -> U,
        _ file: StaticString, _ line: UInt
    ) -> Promise<U> {
        Promise(asPromise().core.derive(MapOn(body), on: dispatcher, operation, Promise<U>.self, file, line))
    }

    /// Transforms the value, which must have a result, on `dispatcher`. See `map(on:)`.
    /// - Parameters:
    ///   - dispatcher: where `body` runs; `nil` for inline.
    ///   - body: called with the value, in a job of the dispatcher.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a promise of the result. Rejected with `PromiseError.compactMap` if `body` returns `nil`; otherwise
    ///   as that of `map(on:)`.
    @inlinable @inline(__always)
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
}

extension Guarantee where T: Sendable {
    /// Transforms the value on `dispatcher`; see `Promise.map(on:)`.
    /// - Parameters:
    ///   - dispatcher: where `body` runs; `nil` for inline.
    ///   - body: called with the value, in a job of the dispatcher.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a guarantee of what `body` returns. A guarantee has no error to report that the dispatcher has
    ///   refused the job or released it without running it. In these cases it is abandoned, and that is logged.
    @inlinable @inline(__always)
    public func map<U: Sendable>(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T) -> U,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<U> { map("map", on: dispatcher, body, file, line) }

    /// Calls `body` with the value on `dispatcher`. See `map(on:)`.
    /// - Parameters:
    ///   - dispatcher: where `body` runs; `nil` for inline.
    ///   - body: called with the value, in a job of the dispatcher.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a guarantee without a value, fulfilled when `body` has returned.
    @inlinable @inline(__always)
    @discardableResult
    public func done(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T) -> Void,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<Void> { map("done", on: dispatcher, body, file, line) }

    /// Calls `body` with the value on `dispatcher`, and passes the value on. See `map(on:)`.
    /// - Parameters:
    ///   - dispatcher: where `body` runs; `nil` for inline.
    ///   - body: called with the value, in a job of the dispatcher.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a guarantee of the value, fulfilled when `body` has returned.
    @inlinable @inline(__always)
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

    /// The common part of the operators that transform the value.
    @inlinable @inline(__always)
    func map<U: Sendable>(
        _ operation: StaticString, on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T) -> U,
        _ file: StaticString, _ line: UInt
    ) -> Guarantee<U> {
        Guarantee<U>(
            core.derive(
                MapOn(body), on: dispatcher, fails: .inSilence, operation, Guarantee<U>.self, file, line))
    }
}

@usableFromInline
struct MapOn<T, U>: DispatchedOperation {
    @usableFromInline typealias Input = T
    @usableFromInline typealias Output = U
    @usableFromInline let body: @Sendable (T) throws -> U
    @usableFromInline var interest: DispatchedNode.Interest { .values }

    @inlinable init(_ body: @escaping @Sendable (T) throws -> U) { self.body = body }

    @inlinable
    func run(_ source: Source<T>) -> DispatchedOutcome<U> {
        guard source.isFulfilled else { return .ofSource }
        do { return .value(try body(source.value)) } catch { return .error(error) }
    }
}
