extension Catchable {
    /// Calls `body` when the promise settles, whichever way, and passes the outcome on. So it is also called when the
    /// chain is cancelled, above or below; what follows is rejected then once `body` has been called.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func ensure(
        _ body: @escaping () -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> { tap("ensure", { _ in body() }, file, line) }

    /// Calls `body` when the promise settles, whichever way, waits for the guarantee that it returns, and only then passes
    /// the outcome on. Also called when the chain is cancelled, and what it returns is not cancelled with it.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func ensureThen(
        _ body: @escaping () -> Guarantee<Void>, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> {
        let source = asPromise().core
        let child = source.derive(EnsureThen<T>(body), role: .runsWhenCancelled)
        return Promise(child.traced("ensureThen", after: source, Promise<T>.self, file, line))
    }
}

@usableFromInline
struct EnsureThen<T>: Operation {
    @usableFromInline typealias Input = T
    @usableFromInline typealias Output = T
    @usableFromInline let body: () -> Guarantee<Void>

    @inlinable init(_ body: @escaping () -> Guarantee<Void>) { self.body = body }

    @inlinable @inline(__always)
    func run(_ source: Source<T>, _ core: PromiseCore) {
        // The outcome waits in a promise of its own, which the cleanup opens; linking makes that one level however
        // long a recursion through here is.
        let held = PromiseCore(DelayedOutcome<T>(source.core), role: .shielding)
        if core.isEndingCancelled { held.isEndingCancelled = true }
        let cleanup = body().core
        cleanup.attach(held)
        if Tracing.isOn { Tracing.adopt(core, cleanup) }
        core.finish(following: held, as: T.self)
    }
}

/// An outcome that waits for something else before it is passed on.
@usableFromInline
struct DelayedOutcome<T>: Operation {
    @usableFromInline typealias Input = Void
    @usableFromInline typealias Output = T
    @usableFromInline let outcome: PromiseCore

    @inlinable init(_ outcome: PromiseCore) { self.outcome = outcome }

    @inlinable @inline(__always)
    func run(_ source: Source<Void>, _ core: PromiseCore) {
        core.finish(as: Source<T>(.passUnretained(outcome), isFulfilled: outcome.settled?.kind == State.fulfilled))
    }
}
