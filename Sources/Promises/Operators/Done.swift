extension Thenable {
    /// Calls `body` with the value: the end of a chain that succeeds.
    ///
    /// ```swift
    /// fetch(url)
    ///     .done { page in print(page) }
    ///     .catch { error in print(error) }
    /// ```
    ///
    /// - Parameter body: called in a job on this thread's loop.
    /// - Returns: a promise that is fulfilled when `body` has returned. Rejected with an error from this promise or
    ///   `body`.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public consuming func done(
        _ body: consuming @escaping (T) throws -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> { consumed(by: "done", Done(body), file, line) }
}

extension Guarantee {
    /// Calls `body` with the value; see `Promise.done`.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    @discardableResult
    public consuming func done(
        _ body: consuming @escaping (T) -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<Void> { consumed(by: "done", Done(body), file, line) }
}

/// `Map` to `Void`, without the closure that `Map` would need around the body to return a generic `Void`.
@usableFromInline
struct Done<T>: Operation {
    @usableFromInline let body: (T) throws -> Void

    @inlinable init(_ body: consuming @escaping (T) throws -> Void) { self.body = body }

    @inlinable @inline(__always)
    func run(_ source: Source<T>, _ core: PromiseCore) {
        guard source.isFulfilled else { return core.finish(rejectedAs: source.reference) }
        do {
            try body(source.takeValue())
            core.finish(())
        } catch {
            core.finish(throwing: error)
        }
    }
}
