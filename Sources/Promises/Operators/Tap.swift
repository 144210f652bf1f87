extension Thenable {
    /// Calls `body` with the outcome, a value or an error, and passes it on.
    ///
    /// ```swift
    /// fetch(url).tap { result in print(result) }.done { page in show(page) }
    /// ```
    ///
    /// - Parameter body: called in a job on this thread's loop. Also sees a cancellation of the chain.
    /// - Returns: a promise that settles like this one, once `body` has returned.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func tap(
        _ body: @escaping (Result<T, any Error>) -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> { derived("tap", Tap(body), role: .observes, file, line) }
}

extension Guarantee {
    /// Calls `body` with the outcome and passes it on, like `Promise.tap`. A failure means that the guarantee was
    /// abandoned or cancelled.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    @discardableResult
    public func tap(
        _ body: @escaping (Result<T, any Error>) -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<T> { derived("tap", Tap(body), role: .observes, file, line) }
}

@usableFromInline
struct Tap<T>: Operation {
    @usableFromInline typealias Output = T
    @usableFromInline let body: (Result<T, any Error>) -> Void

    @inlinable init(_ body: @escaping (Result<T, any Error>) -> Void) { self.body = body }

    @inlinable @inline(__always)
    func run(_ source: Source<T>, _ core: PromiseCore) {
        body(source.result)
        core.finish(as: source)
    }
}
