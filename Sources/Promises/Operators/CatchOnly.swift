extension Catchable {
    /// Calls `body` with the error if it is of type `only` and `policy` lets the handler see it. Other errors pass on.
    ///
    /// ```swift
    /// connect(to: address)
    ///     .catch(only: SystemError.self) { error in print(error.code) }
    ///     .catch { error in print("what else can happen?", error) }
    /// ```
    ///
    /// - Parameters:
    ///   - only: the type of the errors to handle.
    ///   - policy: whether the handler sees errors that mean "cancelled"; by default `conf.catchPolicy`.
    ///   - body: the handler; called with the error, in a job of this thread's loop.
    /// - Returns: the rest of the chain, which handles the other errors. An error that is not handled there is an
    ///   unhandled rejection.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func `catch`<E: Error>(
        only: E.Type, policy: CatchPolicy = conf.catchPolicy, _ body: @escaping (E) -> Void,
        file: StaticString = #fileID, line: UInt = #line
    ) -> CascadingFinalizer {
        let handle = { (error: any Error) -> Bool in
            guard let match = policy.match(error, only) else { return false }
            body(match)
            return true
        }
        return catchSome(handle, file, line)
    }

    /// Calls `body` if the error is equal to `only`. Other errors pass on; see the form with a type.
    /// - Parameters:
    ///   - only: the error to handle, whatever the policy for cancellations.
    ///   - body: the handler; called in a job of this thread's loop.
    /// - Returns: the rest of the chain, which handles the other errors.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func `catch`<E: Error & Equatable>(
        only: E, _ body: @escaping () -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> CascadingFinalizer {
        let handle = { (error: any Error) -> Bool in
            guard error as? E == only else { return false }
            body()
            return true
        }
        return catchSome(handle, file, line)
    }

    /// The common part of the two forms. `body` returns whether it has handled the error.
    @inlinable @inline(__always)
    func catchSome(
        _ body: @escaping (any Error) -> Bool, _ file: StaticString, _ line: UInt
    ) -> CascadingFinalizer {
        let source = asPromise().core
        let child = source.derive(CatchSome<T>(body))
        return CascadingFinalizer(child.traced("catch", after: source, Promise<Void>.self, file, line))
    }
}

extension CatchPolicy {
    /// The error as an `E`, if it is one and the policy lets a handler see it; otherwise `nil`.
    @inlinable
    func match<E: Error>(_ error: any Error, _ only: E.Type) -> E? {
        guard let match = error as? E, catches(error) else { return nil }
        return match
    }
}

@usableFromInline
struct CatchSome<T>: Operation {
    @usableFromInline typealias Input = T
    @usableFromInline typealias Output = Void
    /// Returns whether it has handled the error.
    @usableFromInline let body: (any Error) -> Bool

    @inlinable init(_ body: @escaping (any Error) -> Bool) { self.body = body }

    @inlinable @inline(__always)
    func run(_ source: Source<T>, _ core: PromiseCore) {
        if source.isFulfilled || body(source.error) {
            core.finish(())
        } else {
            core.finish(rejectedAs: source.reference)
        }
    }
}
