extension Thenable {
    /// Calls `body` with the value, waits for the promise that `body` returns, and then passes the original value on.
    /// - Parameter body: called with the value, in a job of this thread's loop. A rejection of this promise skips it. The value
    ///   of the promise that it returns is discarded.
    /// - Returns: a promise of the original value. Rejected with the error of this promise, of the promise that `body`
    ///   returns, or with the error that `body` throws.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func getThen<Next: Thenable>(
        _ body: @escaping (T) throws -> Next, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> {
        let source = asPromise().core
        return Promise(source.derive(GetThen(body)).traced("getThen", after: source, Promise<T>.self, file, line))
    }
}

extension Guarantee {
    /// Calls `body` with the value, waits for the guarantee that `body` returns, and then passes the original value on.
    ///
    /// Traps if `body` returns the guarantee that this call returns: a guarantee has no error to report that with.
    /// - Parameter body: called with the value, in a job of this thread's loop. The value of the guarantee that it returns is
    ///   discarded.
    /// - Returns: a guarantee of the original value.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    @discardableResult
    public func getThen<Next>(
        _ body: @escaping (T) -> Guarantee<Next>, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<T> {
        Guarantee(core.derive(GuaranteeGetThen(body)).traced("getThen", after: core, Guarantee<T>.self, file, line))
    }
}

@usableFromInline
struct GetThen<T, Next: Thenable>: Operation {
    @usableFromInline typealias Input = T
    @usableFromInline typealias Output = T
    @usableFromInline let body: (T) throws -> Next

    @inlinable init(_ body: @escaping (T) throws -> Next) { self.body = body }

    @inlinable @inline(__always)
    func run(_ source: Source<T>, _ core: PromiseCore) {
        guard source.isFulfilled else { return core.finish(rejectedAs: source.reference) }
        do {
            let inner = try body(source.value).asPromise().core
            guard inner.root !== core.root else { return core.finish(throwing: PromiseError.returnedSelf) }
            core.finish(as: source, after: inner, of: Next.T.self)
        } catch { core.finish(throwing: error) }
    }
}

@usableFromInline
struct GuaranteeGetThen<T, Next>: Operation {
    @usableFromInline typealias Input = T
    @usableFromInline typealias Output = T
    @usableFromInline let body: (T) -> Guarantee<Next>

    @inlinable init(_ body: @escaping (T) -> Guarantee<Next>) { self.body = body }

    @inlinable @inline(__always)
    func run(_ source: Source<T>, _ core: PromiseCore) {
        guard source.isFulfilled else { return core.finish(rejectedAs: source.reference) }
        let inner = body(source.value).core
        precondition(
            inner.root !== core.root, "a handler returned its own guarantee, which would then wait for itself")
        core.finish(as: source, after: inner, of: Next.self)
    }
}

extension PromiseCore {
    /// Settles as `source`, which is fulfilled, once `inner` is fulfilled. If `inner` is rejected, settles as `inner`.
    @inlinable
    func finish<Value, Other>(as source: Source<Value>, after inner: PromiseCore, of type: Other.Type) {
        if let outcome = inner.settled {
            // The outcome is known: no job is needed.
            if outcome.isFulfilled { return finish(as: source) }
            inner.markHandled()
            return finish(rejectedAs: outcome.reference)
        }
        // A separate promise stores the value. This core is linked to it, so a cancellation of this core reaches
        // `inner`.
        let held = PromiseCore(GetDelayed<Value, Other>(source.core))
        inner.attach(held)
        if Tracing.isOn { Tracing.adopt(self, inner) }
        finish(following: held, as: Value.self)
    }
}

/// Waits for the side effect, and then settles as the source of the `getThen`.
@usableFromInline
struct GetDelayed<T, Next>: Operation {
    @usableFromInline typealias Input = Next
    @usableFromInline typealias Output = T
    @usableFromInline let outcome: PromiseCore

    @inlinable init(_ outcome: PromiseCore) { self.outcome = outcome }

    @inlinable @inline(__always)
    func run(_ source: Source<Next>, _ core: PromiseCore) {
        guard source.isFulfilled else { return core.finish(rejectedAs: source.reference) }
        core.finish(outcome.payload.value(as: T.self))
    }
}
