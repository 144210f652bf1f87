extension Thenable {
    /// Calls `body` with the value: the end of a chain that succeeds.
    ///
    /// ```swift
    /// fetch(url)
    ///     .done { page in print(page) }
    ///     .catch { error in print(error) }
    /// ```
    ///
    /// The result has no value. An error that `body` throws rejects it.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func done(
        _ body: consuming @escaping (T) throws -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        let source = asPromise().core
        return Promise(source.derive(Done(body)).traced("done", after: source, Promise<Void>.self, file, line))
    }

    /// Calls `body` with the value and passes the value on. An error that `body` throws rejects the result.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func get(
        _ body: @escaping (T) throws -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> {
        let passOn = { (value: T) in
            try body(value)
            return value
        }
        return map("get", passOn, file, line)
    }

    /// Calls `body` with the outcome, a value or an error, and passes it on. `body` also sees a cancellation of the
    /// chain.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func tap(
        _ body: @escaping (Result<T, any Error>) -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> { tap("tap", body, file, line) }

    /// The common part of `tap` and `ensure`.
    @inlinable @inline(__always)
    func tap(
        _ operation: StaticString, _ body: @escaping (Result<T, any Error>) -> Void, _ file: StaticString, _ line: UInt
    ) -> Promise<T> {
        let source = asPromise().core
        return Promise(
            source.derive(Tap(body), role: .runsWhenCancelled).traced(
                operation, after: source, Promise<T>.self, file, line))
    }
}

extension Guarantee {
    /// Calls `body` with the value. The result has no value.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    @discardableResult
    public func done(
        _ body: consuming @escaping (T) -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<Void> {
        Guarantee<Void>(core.derive(Done<T>(body)).traced("done", after: core, Guarantee<Void>.self, file, line))
    }

    /// Calls `body` with the value and passes the value on.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    @discardableResult
    public func get(
        _ body: @escaping (T) -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<T> {
        let passOn = { (value: T) in
            body(value)
            return value
        }
        return map("get", passOn, file, line)
    }

    /// Calls `body` with the outcome and passes it on, as `Promise.tap`. The outcome is a failure only if the guarantee
    /// was abandoned.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    @discardableResult
    public func tap(
        _ body: @escaping (Result<T, any Error>) -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<T> {
        Guarantee(
            core.derive(Tap(body), role: .runsWhenCancelled).traced("tap", after: core, Guarantee<T>.self, file, line))
    }
}

/// `Map` with an output of `Void`. `Map` itself would wrap the body in another closure, which returns a generic `Void`.
@usableFromInline
struct Done<T>: Operation {
    @usableFromInline typealias Input = T
    @usableFromInline typealias Output = Void
    @usableFromInline let body: (T) throws -> Void

    @inlinable init(_ body: consuming @escaping (T) throws -> Void) { self.body = body }

    @inlinable @inline(__always)
    func run(_ source: Source<T>, _ core: PromiseCore) {
        guard source.isFulfilled else { return core.finish(rejectedAs: source.reference) }
        do {
            try body(source.value)
            core.finish(())
        } catch {
            core.finish(throwing: error)
        }
    }
}

@usableFromInline
struct Tap<T>: Operation {
    @usableFromInline typealias Input = T
    @usableFromInline typealias Output = T
    @usableFromInline let body: (Result<T, any Error>) -> Void

    @inlinable init(_ body: @escaping (Result<T, any Error>) -> Void) { self.body = body }

    @inlinable @inline(__always)
    func run(_ source: Source<T>, _ core: PromiseCore) {
        body(source.result)
        core.finish(as: source)
    }
}
