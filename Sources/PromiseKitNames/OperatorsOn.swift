import Promises
import Reactor

// Operators with `on:` that can be written as `map(on:)`, `then(on:)`, `tap(on:)` or `recover(on:)`.

extension Thenable where T: Sendable {
    /// `map(on: dispatcher) { … }`, rejected with `PromiseError.compactMap` if `body` returns `nil`.
    public func compactMap<U: Sendable>(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T) throws -> U?,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<U> {
        let unwrap: @Sendable (T) throws -> U = { value in
            if let result = try body(value) { return result }
            throw PromiseError.compactMap(value: PromiseError.shown(value), type: "\(U.self)")
        }
        return asPromise().map(on: dispatcher, unwrap, file: file, line: line)
    }

    /// `map(on: dispatcher, body)`
    public func done(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T) throws -> Void,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> { asPromise().map(on: dispatcher, body, file: file, line: line) }

    /// `map(on: dispatcher) { … }`, with the value of this promise.
    public func get(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T) throws -> Void,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> {
        let passOn: @Sendable (T) throws -> T = { value in
            try body(value)
            return value
        }
        return asPromise().map(on: dispatcher, passOn, file: file, line: line)
    }
}

extension Catchable where T: Sendable {
    /// `tap(on: dispatcher) { _ in body() }`
    public func ensure(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable () -> Void,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> { tap(on: dispatcher, { _ in body() }, file: file, line: line) }

    /// `ensureThen { Guarantee(on: dispatcher, body).then { $0 } }`
    @available(*, noasync, message: "no loop passes the outcome on in an async function; use tap(on:)")
    public func ensureThen(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable () -> Guarantee<Void>,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> {
        let cleanUp = { Guarantee(on: dispatcher, body, file: file, line: line).then({ $0 }, file: file, line: line) }
        return ensureThen(cleanUp, file: file, line: line)
    }

    /// `recover(on: dispatcher, policy: .allErrors, body)`, as a guarantee, abandoned if the dispatcher does not run
    /// the job.
    @discardableResult
    public func recover(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (any Error) -> Guarantee<T>,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<T> {
        Guarantee(
            certain: recover(on: dispatcher, policy: .allErrors, { body($0).asPromise() }, file: file, line: line))
    }
}

extension Finalizer {
    /// `finally { Guarantee(on: dispatcher, body) }`
    @available(*, noasync, message: "no loop sees the end of the chain in an async function; use tap(on:)")
    public func finally(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable () -> Void, file: StaticString = #fileID,
        line: UInt = #line
    ) { finally({ _ = Guarantee(on: dispatcher, body, file: file, line: line) }, file: file, line: line) }
}

extension Guarantee where T: Sendable {
    /// `map(on: dispatcher, body)`
    @discardableResult
    public func done(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T) -> Void,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<Void> { map(on: dispatcher, body, file: file, line: line) }

    /// `map(on: dispatcher) { … }`, with the value of this guarantee.
    @discardableResult
    public func get(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T) -> Void,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<T> {
        let passOn: @Sendable (T) -> T = { value in
            body(value)
            return value
        }
        return map(on: dispatcher, passOn, file: file, line: line)
    }

    /// `then(on: dispatcher, body)`, as a guarantee, abandoned if the dispatcher does not run the job.
    @discardableResult
    public func then<Next: Sendable>(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T) -> Guarantee<Next>,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<Next> {
        Guarantee<Next>(
            certain: asPromise().then(on: dispatcher, { body($0).asPromise() }, file: file, line: line))
    }
}
