import Reactor

extension Thenable where T: Sendable {
    /// The value, transformed on `dispatcher`: another loop's `remote`, a `ThreadPool`, a dispatcher of your own.
    ///
    /// ```swift
    /// image.map(on: ThreadPool.shared) { try resize($0) }.done { show($0) }
    /// ```
    ///
    /// An error that `body` throws rejects, and so does one that `dispatcher` throws; if that lets the job go, the promise is
    /// rejected with `PromiseError.abandoned`. A rejection passes `body` by and does not go through the dispatcher. The
    /// promise is like any other: its own handlers run where they were attached. Cancelled before `body` has begun, it
    /// releases it; a `body` that is running goes on, and what it brings is let go.
    ///
    /// With `nil` in place of a dispatcher, `body` runs inline: on the thread that settles this promise, inside that
    /// call; or at once, if it has settled. Inline handlers take turns, none runs inside another; nor does what they hand to
    /// a dispatcher: it starts when they have returned.
    @inlinable @inline(__always)
    public func map<U: Sendable>(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T) throws -> U,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<U> { map("map", on: dispatcher, body, file, line) }

    /// Calls `body` with the value on `dispatcher`; what follows has none. See `map(on:)`.
    @inlinable @inline(__always)
    public func done(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T) throws -> Void,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> { map("done", on: dispatcher, body, file, line) }

    /// Calls `body` with the value on `dispatcher`, and passes the value on. See `map(on:)`.
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

    /// What `map` and its kin have in common.
    @inlinable @inline(__always)
    func map<U: Sendable>(
        _ operation: StaticString, on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T) throws -> U,
        _ file: StaticString, _ line: UInt
    ) -> Promise<U> {
        Promise(asPromise().core.derive(MapOn(body), on: dispatcher, operation, Promise<U>.self, file, line))
    }
}

extension Guarantee where T: Sendable {
    /// The value, transformed on `dispatcher`; see `Promise.map(on:)`.
    ///
    /// A guarantee has no error to say with that the dispatcher has refused the job or let it go: it is abandoned then,
    /// and logged so.
    @inlinable @inline(__always)
    public func map<U: Sendable>(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T) -> U,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<U> { map("map", on: dispatcher, body, file, line) }

    /// Calls `body` with the value on `dispatcher`; what follows has none. See `map(on:)`.
    @inlinable @inline(__always)
    @discardableResult
    public func done(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T) -> Void,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<Void> { map("done", on: dispatcher, body, file, line) }

    /// Calls `body` with the value on `dispatcher`, and passes the value on. See `map(on:)`.
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

    /// What `map` and its kin have in common.
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
