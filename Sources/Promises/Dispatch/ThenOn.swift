import Reactor

extension Thenable where T: Sendable {
    /// Calls `body` with the value on `dispatcher`, and waits for the promise that `body` returns. See `map(on:)`.
    ///
    /// Unlike those of `then`, the promises of this operator are settled one by one, and not linked. An endless
    /// recursion through it therefore does not run in constant memory.
    /// - Parameters:
    ///   - dispatcher: where `body` runs; `nil` for inline.
    ///   - body: called with the value. It attaches handlers only with `on:`, unless `dispatcher` is a loop's `remote`:
    ///     the loop of a pool's thread is never driven.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a promise that settles as the one that `body` returns. Rejected as that of `map(on:)` if `body`
    ///   throws or does not run.
    @inlinable @inline(__always)
    public func then<Next: Thenable>(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T) throws -> Next,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Next.T> where Next.T: Sendable {
        Promise(asPromise().core.derive(ThenOn(body), on: dispatcher, "then", Promise<Next.T>.self, file, line))
    }

    /// The form for closures of several statements, of which one may be `return .value(…)`.
    /// - Parameters:
    ///   - dispatcher: where `body` runs; `nil` for inline.
    ///   - body: called with the value.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: as the form that returns a thenable.
    @inlinable @inline(__always)
    @_disfavoredOverload
    public func then<U: Sendable>(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T) throws -> Promise<U>,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<U> {
        Promise(asPromise().core.derive(ThenOn(body), on: dispatcher, "then", Promise<U>.self, file, line))
    }
}

extension Guarantee where T: Sendable {
    /// Calls `body` with the value on `dispatcher`, and waits for the guarantee that `body` returns. See `map(on:)`.
    ///
    /// Traps if `body` returns the guarantee that this call returns: a guarantee has no error to report that with.
    /// - Parameters:
    ///   - dispatcher: where `body` runs; `nil` for inline.
    ///   - body: called with the value.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a guarantee of the value of the guarantee that `body` returns. It is abandoned as that of `map(on:)`.
    @inlinable @inline(__always)
    @discardableResult
    public func then<Next: Sendable>(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T) -> Guarantee<Next>,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<Next> {
        Guarantee<Next>(
            core.derive(
                GuaranteeThenOn(body), on: dispatcher, fails: .inSilence, "then", Guarantee<Next>.self, file, line))
    }
}

@usableFromInline
struct ThenOn<T, Next: Thenable>: DispatchedOperation {
    @usableFromInline typealias Input = T
    @usableFromInline typealias Output = Next.T
    @usableFromInline let body: @Sendable (T) throws -> Next
    @usableFromInline var interest: DispatchedNode.Interest { .values }

    @inlinable init(_ body: @escaping @Sendable (T) throws -> Next) { self.body = body }

    @inlinable
    func run(_ source: Source<T>) -> DispatchedOutcome<Next.T> {
        guard source.isFulfilled else { return .ofSource }
        do { return .following(try body(source.value).asPromise().core) } catch { return .error(error) }
    }
}

@usableFromInline
struct GuaranteeThenOn<T, Next>: DispatchedOperation {
    @usableFromInline typealias Input = T
    @usableFromInline typealias Output = Next
    @usableFromInline let body: @Sendable (T) -> Guarantee<Next>
    @usableFromInline var interest: DispatchedNode.Interest { .values }

    @inlinable init(_ body: @escaping @Sendable (T) -> Guarantee<Next>) { self.body = body }

    @inlinable
    func run(_ source: Source<T>) -> DispatchedOutcome<Next> {
        guard source.isFulfilled else { return .ofSource }
        return .following(body(source.value).core)
    }
}
