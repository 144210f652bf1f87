extension Catchable {
    /// Calls `body` with the error if its type is `only`, unless `policy` excludes it. Passes other errors on.
    ///
    /// ```swift
    /// connect(to: address)
    ///     .catch(only: SystemError.self) { error in print(error.code) }
    ///     .catch { error in print("what else can happen?", error) }
    /// ```
    ///
    /// - Parameters:
    ///   - only: the type of the errors to handle.
    ///   - policy: decides whether `body` sees cancellations.
    ///   - body: called with the error, in a job on this thread's loop.
    /// - Returns: the rest of the chain, rejected with any error that this handler has not handled.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func `catch`<E: Error>(
        only: E.Type, policy: CatchPolicy = conf.catchPolicy, _ body: @escaping (E) -> Void,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        let handle = { (error: any Error) in policy.match(error, only).map(body) }
        return derived("catch", CatchSome<T>(handle), file, line)
    }

    /// Calls `body` if the error is equal to `only`, even if it is a cancellation. Passes other errors on.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func `catch`<E: Error & Equatable>(
        only: E, _ body: @escaping () -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        let handle = { (error: any Error) in error as? E == only ? body() : nil }
        return derived("catch", CatchSome<T>(handle), file, line)
    }
}

extension CatchPolicy {
    @inlinable
    func match<E: Error>(_ error: any Error, _ only: E.Type) -> E? {
        guard let match = error as? E, catches(error) else { return nil }
        return match
    }
}

@usableFromInline
struct CatchSome<T>: Operation {
    /// Returns `nil` for an error that it does not handle.
    @usableFromInline let body: (any Error) -> Void?

    @inlinable init(_ body: @escaping (any Error) -> Void?) { self.body = body }

    @inlinable @inline(__always)
    func run(_ source: Source<T>, _ core: PromiseCore) {
        if source.isFulfilled || body(source.error) != nil {
            core.finish(())
        } else {
            core.finish(rejectedAs: source.reference)
        }
    }
}
