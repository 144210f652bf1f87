extension Thenable {
    /// Calls `body` with the value, waits for the promise that it returns, and only then passes the value on. What that
    /// promise is fulfilled with is dropped; its rejection, or an error that `body` throws, rejects. A rejection of this
    /// promise passes `body` by.
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
    /// Calls `body` with the value, waits for the guarantee that it returns, and only then passes the value on. Traps if
    /// `body` returns the very guarantee that this makes: it has no error to say so with.
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
            inner.root !== core.root, "a guarantee's handler returned that guarantee, which would wait for itself")
        core.finish(as: source, after: inner, of: Next.self)
    }
}

extension PromiseCore {
    /// As `source`, which is fulfilled, once `inner` is fulfilled; otherwise as that is rejected.
    @inlinable
    func finish<Value, Other>(as source: Source<Value>, after inner: PromiseCore, of type: Other.Type) {
        if let (settled, kind) = inner.settled {
            // No need to queue for what is known.
            if kind == State.fulfilled { return finish(as: source) }
            settled._withUnsafeGuaranteedRef { $0.markHandled() }
            return finish(rejectedAs: settled)
        }
        // The value waits in a promise of its own. Being linked to that, this one climbs to `inner` when it is cancelled.
        let held = PromiseCore(GetDelayed<Value, Other>(source.core))
        inner.attach(held)
        if Tracing.isOn { Tracing.adopt(self, inner) }
        finish(following: held, as: Value.self)
    }
}

/// Waits for the side effect, then settles as the source of the `getThen` did.
@usableFromInline
struct GetDelayed<T, Next>: Operation {
    @usableFromInline typealias Input = Next
    @usableFromInline typealias Output = T
    @usableFromInline let outcome: PromiseCore

    @inlinable init(_ outcome: PromiseCore) { self.outcome = outcome }

    @inlinable @inline(__always)
    func run(_ source: Source<Next>, _ core: PromiseCore) {
        guard source.isFulfilled else { return core.finish(rejectedAs: source.reference) }
        core.finish(outcome.value(as: T.self))
    }
}
