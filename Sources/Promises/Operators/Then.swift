extension Thenable {
    /// Calls `body` with the value and settles with the outcome of the promise that `body` returns.
    ///
    /// ```swift
    /// connect(to: address).then { connection in connection.write("ping") }
    /// ```
    ///
    /// A loop written as recursion through `then` runs in constant memory:
    ///
    /// ```swift
    /// func serve() -> Promise<Void> { read().then { write($0) }.then { serve() } }
    /// ```
    ///
    /// - Parameter body: called in a job on this thread's loop.
    /// - Returns: a promise with the outcome of the promise of `body`. Rejected with an error from this promise or
    ///   `body`, or with `PromiseError.returnedSelf` if `body` returns the result itself.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public consuming func then<Next: Thenable>(
        _ body: consuming @escaping (T) throws -> Next, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Next.T> { consumed(by: "then", Then(body), file, line) }

    // A closure with several statements needs a return type from outside, which this overload supplies. The compiler
    // tries the overload above first, so this one costs it little.

    /// Overload for closures with several statements that return `.value(…)`, or mix promises and guarantees.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable
    @_disfavoredOverload
    public consuming func then<U>(
        _ body: @escaping (T) throws -> any Thenable<U>, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<U> {
        let unwrap = { (value: T) throws -> Promise<U> in try body(value).asPromise() }
        return then(unwrap, file: file, line: line)
    }
}

extension Guarantee {
    /// Calls `body` with the value, and waits for the guarantee that `body` returns.
    ///
    /// Traps if `body` returns the guarantee that this call returns, since a guarantee cannot report that error.
    /// - Parameter body: called in a job on this thread's loop.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    @discardableResult
    public consuming func then<Next>(
        _ body: consuming @escaping (T) -> Guarantee<Next>, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<Next> { consumed(by: "then", GuaranteeThen(body), file, line) }
}

// In the overload above, the compiler wraps a closure without parameters in another one, which allocates a block per
// call. A fixed promise type costs the compiler least.
extension Promise where T == Void {
    /// Overload for closures without parameters.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public consuming func then<U>(
        _ body: consuming @escaping () throws -> Promise<U>, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<U> { consumed(by: "then", ThenWithout(body), file, line) }
}

@usableFromInline
struct Then<T, Next: Thenable>: Operation {
    @usableFromInline typealias Output = Next.T
    @usableFromInline let body: (T) throws -> Next

    @inlinable init(_ body: consuming @escaping (T) throws -> Next) { self.body = body }

    @inlinable @inline(__always)
    func run(_ source: Source<T>, _ core: PromiseCore) {
        guard source.isFulfilled else { return core.finish(rejectedAs: source.reference) }
        do {
            try core.finish(following: body(source.takeValue()))
        } catch { core.finish(throwing: error) }
    }
}

/// `Then` after a value of `Void`.
@usableFromInline
struct ThenWithout<U>: Operation {
    @usableFromInline typealias Output = U
    @usableFromInline let body: () throws -> Promise<U>

    @inlinable init(_ body: consuming @escaping () throws -> Promise<U>) { self.body = body }

    @inlinable @inline(__always)
    func run(_ source: Source<Void>, _ core: PromiseCore) {
        guard source.isFulfilled else { return core.finish(rejectedAs: source.reference) }
        do { try core.finish(following: body()) } catch { core.finish(throwing: error) }
    }
}

@usableFromInline
struct GuaranteeThen<T, Next>: Operation {
    @usableFromInline typealias Output = Next
    @usableFromInline let body: (T) -> Guarantee<Next>

    @inlinable init(_ body: consuming @escaping (T) -> Guarantee<Next>) { self.body = body }

    @inlinable @inline(__always)
    func run(_ source: Source<T>, _ core: PromiseCore) {
        guard source.isFulfilled else { return core.finish(rejectedAs: source.reference) }
        core.finish(followingGuarantee: body(source.takeValue()))
    }
}
