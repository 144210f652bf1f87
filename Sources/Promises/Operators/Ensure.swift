extension Catchable {
    /// Calls `body` when the promise settles, even by a cancellation of the chain above or below, and passes the
    /// outcome on.
    ///
    /// ```swift
    /// showSpinner()
    /// fetch(url)
    ///     .ensure { hideSpinner() }
    ///     .done { page in show(page) }
    ///     .catch { error in print(error) }
    /// ```
    ///
    /// - Parameter body: called in a job on this thread's loop.
    /// - Returns: a promise that settles like this one, once `body` has been called.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func ensure(
        _ body: consuming @escaping () -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> { derived("ensure", Ensure<T>(body), file, line) }

    /// Calls `body` when the promise settles, waits for its guarantee, and then passes the outcome on.
    ///
    /// ```swift
    /// session.ask(question).ensureThen { session.connection.close() }
    /// ```
    ///
    /// A cancellation of the chain also calls `body`, but does not cancel its guarantee.
    /// - Parameter body: called in a job on this thread's loop.
    /// - Returns: a promise that settles like this one, once the guarantee of `body` is fulfilled.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func ensureThen(
        _ body: consuming @escaping () -> Guarantee<Void>, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> { derived("ensureThen", EnsureThen<T>(body), file, line) }
}

extension Guarantee {
    /// Calls `body` when the guarantee is fulfilled, abandoned or cancelled, and passes the value on.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    @discardableResult
    public func ensure(
        _ body: consuming @escaping () -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<T> { derived("ensure", Ensure<T>(body), file, line) }

    /// Like `ensure`, but waits for the guarantee of `body` before it passes the value on.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    @discardableResult
    public func ensureThen(
        _ body: @escaping () -> Guarantee<Void>, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<T> { derived("ensureThen", EnsureThen<T>(body), file, line) }
}

@usableFromInline
struct EnsureThen<T>: Operation {
    @usableFromInline typealias Output = T
    @usableFromInline let body: () -> Guarantee<Void>

    @inlinable init(_ body: consuming @escaping () -> Guarantee<Void>) { self.body = body }

    @inlinable @inline(__always)
    func run(_ source: Source<T>, _ core: PromiseCore) { core.finish(following: held(source, for: core)) }

    /// Stores the outcome in a separate promise until the clean-up has ended. Linking to that promise keeps the depth
    /// at one level, however long a recursion through this operator is.
    @inlinable @inline(__always)
    func held(_ source: Source<T>, for core: PromiseCore) -> Promise<T> {
        let held = PromiseCore(DelayedOutcome<T>(source.core, afterAnyOutcome: true), role: .shielding)
        let cleanup = body().core
        cleanup.attach(held)
        if Tracing.isOn { Tracing.adopt(core, cleanup) }
        return Promise(held)
    }
}

/// Passes an outcome on once another promise has settled.
@usableFromInline
struct DelayedOutcome<T>: Operation {
    @usableFromInline typealias Output = T
    @usableFromInline let outcome: PromiseCore
    /// True when a rejection counts too, for example from a clean-up. A cancelled pause rejects.
    @usableFromInline let afterAnyOutcome: Bool

    @inlinable init(_ outcome: PromiseCore, afterAnyOutcome: Bool) {
        (self.outcome, self.afterAnyOutcome) = (outcome, afterAnyOutcome)
    }

    @inlinable @inline(__always)
    func run(_ source: AnySource, _ core: PromiseCore) {
        guard source.isFulfilled || afterAnyOutcome else { return core.finish(rejectedAs: source.reference) }
        core.finish(as: Source<T>(outcome.ref, isFulfilled: outcome.settled?.isFulfilled == true))
    }
}

/// `Tap` for a body that ignores the outcome, without another closure around the body.
@usableFromInline
struct Ensure<T>: Operation {
    @usableFromInline typealias Output = T
    @usableFromInline let body: () -> Void

    @inlinable init(_ body: consuming @escaping () -> Void) { self.body = body }

    @inlinable @inline(__always)
    func run(_ source: Source<T>, _ core: PromiseCore) {
        body()
        core.finish(as: source)
    }
}
