import Promises
import Reactor

// `on: nil` with a function that is not `@Sendable`, such as a retry's nested function. The operators in Promises
// refuse such a function, because they run it inline on any settling thread. These operators run it as if `on:` were
// left out. `nil` is the only value of `Never?`.

extension Thenable {
    /// `then(body)`: on this thread, as a job of its loop.
    ///
    /// ```swift
    /// after(pause).then(on: nil, attempt)
    /// ```
    @_disfavoredOverload
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    public func then<Next: Thenable>(
        on none: Never?, _ body: @escaping (T) throws -> Next, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Next.T> { then(body, file: file, line: line) }

    /// `map(body)`: on this thread, as a job of its loop.
    @_disfavoredOverload
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    public func map<U>(
        on none: Never?, _ body: @escaping (T) throws -> U, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<U> { map(body, file: file, line: line) }

    /// `done(body)`: on this thread, as a job of its loop.
    @_disfavoredOverload
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    public func done(
        on none: Never?, _ body: @escaping (T) throws -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> { done(body, file: file, line: line) }
}

extension Catchable {
    /// `catch(policy: policy, body)`: on this thread, as a job of its loop.
    @_disfavoredOverload
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @discardableResult
    public func `catch`(
        on none: Never?, policy: CatchPolicy = conf.catchPolicy, _ body: @escaping (any Error) -> Void,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Finalizer { `catch`(policy: policy, body, file: file, line: line) }

    /// `recover(policy: policy, body)`: on this thread, as a job of its loop.
    @_disfavoredOverload
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    public func recover(
        on none: Never?, policy: CatchPolicy = conf.catchPolicy, _ body: @escaping (any Error) throws -> Promise<T>,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> { recover(policy: policy, body, file: file, line: line) }
}
