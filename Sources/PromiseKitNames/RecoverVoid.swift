import Promises
import Reactor

// Overloads of `recover` for closures that return nothing.

extension Catchable where T == Void {
    /// `recover { error in body(error); return .value }`
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @discardableResult
    public func recover(
        _ body: @escaping (any Error) -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<Void> {
        let handle = { (error: any Error) -> Guarantee<Void> in
            body(error)
            return .value
        }
        return recover(handle, file: file, line: line)
    }

    /// `recover(policy: policy) { error in try body(error); return .value }`
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    public func recover(
        policy: CatchPolicy = conf.catchPolicy, _ body: @escaping (any Error) throws -> Void,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        let handle = { (error: any Error) -> Promise<Void> in
            try body(error)
            return .value
        }
        return recover(policy: policy, handle, file: file, line: line)
    }

    /// `recover(on: dispatcher) { error in body(error); return .value }`, as a guarantee.
    @discardableResult
    public func recover(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (any Error) -> Void,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<Void> {
        let handle: @Sendable (any Error) -> Guarantee<Void> = { error in
            body(error)
            return .value
        }
        return recover(on: dispatcher, handle, file: file, line: line)
    }

    /// `recover(on: dispatcher, policy: policy) { error in try body(error); return .value }`
    public func recover(
        on dispatcher: (any Dispatcher)?, policy: CatchPolicy = conf.catchPolicy,
        _ body: @escaping @Sendable (any Error) throws -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        let handle: @Sendable (any Error) throws -> Promise<Void> = { error in
            try body(error)
            return .value
        }
        return recover(on: dispatcher, policy: policy, handle, file: file, line: line)
    }
}
