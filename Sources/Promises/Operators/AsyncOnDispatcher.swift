import Reactor

/// Selects the form of `async` that returns a promise: `pool.async(.promise) { … }`.
public enum Namespacer: Sendable {
    /// The call returns a promise.
    case promise
}

extension Dispatcher {
    /// Runs `body` on this dispatcher, and returns a promise that settles as `body` does.
    ///
    /// ```swift
    /// let digest = ThreadPool.shared.async(.promise) { try hash(contentsOf: path) }
    /// ```
    ///
    /// Errors and cancellation are as for `Promise.map(on:)`: if the promise is cancelled before `body` has begun,
    /// `body` is released without being called.
    /// - Parameters:
    ///   - namespacer: `.promise`.
    ///   - body: called once, as a job of this dispatcher.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a promise of what `body` returns, rejected as that of `map(on:)`.
    @_disfavoredOverload
    public func async<T: Sendable>(
        _ namespacer: Namespacer, _ body: @escaping @Sendable () throws -> T,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> {
        Promise.value.map("async", on: self, body, file, line)
    }

    /// Runs `body` on this dispatcher, and returns a guarantee of its result.
    /// - Parameters:
    ///   - namespacer: `.promise`.
    ///   - body: called once, as a job of this dispatcher.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a guarantee of what `body` returns. As with `Guarantee.map(on:)`, it is abandoned if the dispatcher
    ///   refuses the job or releases it without running it.
    @discardableResult
    public func async<T: Sendable>(
        _ namespacer: Namespacer, _ body: @escaping @Sendable () -> T,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<T> {
        Guarantee.value.map("async", on: self, body, file, line)
    }
}
