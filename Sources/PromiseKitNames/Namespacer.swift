import Promises
import Reactor

/// Selects the overload of `async` that returns a promise: `pool.async(.promise) { … }`.
public enum Namespacer: Sendable {
    /// The call returns a promise.
    case promise
}

extension Dispatcher {
    /// Runs `body` on this dispatcher: `Promise(on: dispatcher) { … }`.
    @_disfavoredOverload
    public func async<T: Sendable>(
        _ namespacer: Namespacer, _ body: @escaping @Sendable () throws -> T, file: StaticString = #fileID,
        line: UInt = #line
    ) -> Promise<T> { Promise(on: self, body, file: file, line: line) }

    /// Runs `body` on this dispatcher: `Guarantee(on: dispatcher) { … }`.
    @discardableResult
    public func async<T: Sendable>(
        _ namespacer: Namespacer, _ body: @escaping @Sendable () -> T, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<T> { Guarantee(on: self, body, file: file, line: line) }
}
