extension Catchable {
    /// Calls `body` with the error if it is of type `only` and `policy` lets it see it. Other errors flow on.
    ///
    /// ```swift
    /// connect(to: address)
    ///     .catch(only: SystemError.self) { error in print(error.code) }
    ///     .catch { error in print("what else can happen?", error) }
    /// ```
    /// - Returns: what is left of the chain, for the other errors. One that nobody catches there is an unhandled rejection.
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

    /// Calls `body` if the error is equal to `only`, whatever the policy for cancellations. Other errors flow on; see the
    /// form with a type.
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

    /// What these have in common.
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
    /// The error, if it is of this type and may be seen.
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
    /// Whether it has handled the error.
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
