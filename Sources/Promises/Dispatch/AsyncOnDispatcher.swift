import Reactor

/// Tells the `async` that gives a promise from others of that name: `pool.async(.promise) { … }`.
public enum Namespacer: Sendable {
    /// What is started gives a promise.
    case promise
}

extension Dispatcher {
    /// Runs `body` here, and settles as it does.
    ///
    /// ```swift
    /// let digest = ThreadPool.shared.async(.promise) { try hash(contentsOf: path) }
    /// ```
    ///
    /// Errors and cancellation are as for `Promise.map(on:)`: cancelled before `body` has begun, it is released unrun.
    @inlinable
    @_disfavoredOverload
    public func async<T: Sendable>(
        _ namespacer: Namespacer, _ body: @escaping @Sendable () throws -> T,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> {
        Promise(
            PromiseCore.void.derive(MapOn<Void, T> { try body() }, on: self, "async", Promise<T>.self, file, line))
    }

    /// Runs `body` here, and is fulfilled with what it returns. As for `Guarantee.map(on:)`, it is abandoned if the
    /// dispatcher refuses the job or lets it go.
    @inlinable
    @discardableResult
    public func async<T: Sendable>(
        _ namespacer: Namespacer, _ body: @escaping @Sendable () -> T,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<T> {
        Guarantee(
            PromiseCore.void.derive(
                MapOn<Void, T> { body() }, on: self, fails: .inSilence, "async", Guarantee<T>.self, file, line))
    }
}
