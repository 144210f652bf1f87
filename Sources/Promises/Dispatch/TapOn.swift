import Reactor

extension Thenable where T: Sendable {
    /// Calls `body` with the outcome on `dispatcher`, and passes the outcome on.
    /// - Parameters:
    ///   - dispatcher: where `body` runs; `nil` for inline.
    ///   - body: called with the outcome, which may be a cancellation of the chain. It is not called if the dispatcher
    ///     refuses the job or releases it without running it; see `map(on:)`.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a promise that settles as this one, once `body` has returned.
    @inlinable @inline(__always)
    public func tap(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (Result<T, any Error>) -> Void,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> { tap("tap", on: dispatcher, body, file, line) }

    /// The common part of `tap` and `ensure`.
    @inlinable @inline(__always)
    func tap(
        _ operation: StaticString, on dispatcher: (any Dispatcher)?,
        _ body: @escaping @Sendable (Result<T, any Error>) -> Void, _ file: StaticString, _ line: UInt
    ) -> Promise<T> {
        Promise(
            asPromise().core.derive(
                TapOn(body), on: dispatcher, role: .runsWhenCancelled, operation, Promise<T>.self, file, line))
    }
}

extension Catchable where T: Sendable {
    /// Calls `body` on `dispatcher` when the promise settles or is cancelled, and then passes the outcome on.
    /// - Parameters:
    ///   - dispatcher: where `body` runs; `nil` for inline.
    ///   - body: called once, unless the dispatcher refuses the job or releases it without running it; see `map(on:)`.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a promise that settles as this one, once `body` has returned.
    @inlinable @inline(__always)
    public func ensure(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable () -> Void,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> { tap("ensure", on: dispatcher, { _ in body() }, file, line) }
}

extension Guarantee where T: Sendable {
    /// Calls `body` with the outcome on `dispatcher`, and passes it on, as `Promise.tap(on:)`.
    /// - Parameters:
    ///   - dispatcher: where `body` runs; `nil` for inline.
    ///   - body: called with the outcome, which is a failure only if the guarantee was abandoned or cancelled.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a guarantee of the value, fulfilled when `body` has returned.
    @inlinable @inline(__always)
    @discardableResult
    public func tap(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (Result<T, any Error>) -> Void,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<T> {
        Guarantee(
            core.derive(
                TapOn(body), on: dispatcher, fails: .inSilence, role: .runsWhenCancelled, "tap", Guarantee<T>.self,
                file, line))
    }
}

extension Guarantee where T: Sendable {
    /// Calls `body` on `dispatcher` when the guarantee is fulfilled, abandoned or cancelled, and passes the value on.
    /// - Parameters:
    ///   - dispatcher: where `body` runs; `nil` for inline.
    ///   - body: called once, unless the dispatcher refuses the job or releases it without running it; see `map(on:)`.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a guarantee of the value, fulfilled when `body` has returned.
    @inlinable @inline(__always)
    @discardableResult
    public func ensure(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable () -> Void,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<T> {
        Guarantee(
            core.derive(
                TapOn<T> { _ in body() }, on: dispatcher, fails: .inSilence, role: .runsWhenCancelled, "ensure",
                Guarantee<T>.self, file, line))
    }
}

@usableFromInline
struct TapOn<T>: DispatchedOperation {
    @usableFromInline typealias Input = T
    @usableFromInline typealias Output = T
    @usableFromInline let body: @Sendable (Result<T, any Error>) -> Void
    @usableFromInline var interest: DispatchedNode.Interest { .anything }

    @inlinable init(_ body: @escaping @Sendable (Result<T, any Error>) -> Void) { self.body = body }

    @inlinable
    func run(_ source: Source<T>) -> DispatchedOutcome<T> {
        body(source.result)
        return .ofSource
    }
}
