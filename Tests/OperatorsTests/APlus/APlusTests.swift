import Promises
import Reactor
import Testing

@testable import PromisesTestSupport

/// The clauses 2.1 to 2.3 of Promises/A+ 1.1, one by one; docs/coming-from/javascript.md has the departures.
///
/// Each is tried with promises that settle before a handler is attached, at once afterwards, and later.
@Suite enum APlusTests {}

extension APlusTests {
    /// When a promise settles, as seen by whoever attaches handlers to it.
    enum Settling: CaseIterable {
        /// It has settled.
        case already
        /// On the next line, in the same turn.
        case atOnce
        /// By a job that is queued behind the line that attaches.
        case laterByAJob
        /// By a timer.
        case laterByATimer

        var isLater: Bool { self == .laterByAJob || self == .laterByATimer }

        /// Calls `settle` and `attach` in the order that this stands for, and runs the loop till nothing is left to do.
        func run(_ loop: EventLoop, settle: @escaping () -> Void, attach: () throws -> Void) throws {
            switch self {
            case .already:
                settle()
                try loop.run()
                try attach()
            case .atOnce:
                try attach()
                settle()
            case .laterByAJob:
                try attach()
                loop.enqueue(settle)
            case .laterByATimer:
                try attach()
                loop.schedule(after: .seconds(1), settle)
            }
            try loop.run()
        }
    }

    /// How a promise comes by its outcome.
    enum Kind: CaseIterable {
        /// Settled by a resolver.
        case handMade
        /// The result of an operator.
        case derived
        /// Equal to the result of an operator, which a handler has returned.
        case linked
        /// Waits for the promise that a handler has returned.
        case following
        /// The same, where that one has handlers of its own.
        case followingWithOthers

        /// A pending promise of this kind, and the resolver that makes it settle in the end.
        func make<Value>(_ loop: EventLoop) throws -> (Promise<Value>, Resolver<Value>) {
            let (promise, resolver) = Promise<Value>.pending()
            let inner: Promise<Value>
            switch self {
            case .handMade: return (promise, resolver)
            case .derived: return (promise.tap { _ in }, resolver)
            case .linked: inner = promise.tap { _ in }
            case .following: inner = promise
            case .followingWithOthers:
                inner = promise
                inner.ignoringErrors()
            }
            let outer = Promise.value(()).then { inner }
            try loop.run()
            return (outer, resolver)
        }
    }

    /// A promise of some kind that settles in some way.
    struct Setting: CustomTestStringConvertible, Sendable {
        let settling: Settling
        let kind: Kind

        static let all = Settling.allCases.flatMap { settling in
            Kind.allCases.map { Setting(settling: settling, kind: $0) }
        }

        var testDescription: String { "\(settling), \(kind)" }

        /// Hands `attach` a promise that settles with `outcome`, on a loop in virtual time, which it then runs till nothing
        /// is left to do.
        ///
        /// - Parameter beforeSettling: is called while the promise is certainly pending, and its loop has been driven.
        func run<Value>(
            _ outcome: Result<Value, any Error>, beforeSettling: () -> Void = {},
            attach: (Promise<Value>) throws -> Void
        ) throws {
            try inLoop { loop throws in
                let (promise, resolver) = try kind.make(loop) as (Promise<Value>, Resolver<Value>)
                try settling.run(loop, settle: { resolver.resolve(outcome) }) {
                    try attach(promise)
                    if settling != .already {
                        // What is queued now, the job that settles among it, comes after this.
                        try loop.turn(.poll)
                        beforeSettling()
                    }
                }
            }
        }

        /// The same with a guarantee.
        func run<Value>(_ value: Value, attach: (Guarantee<Value>) throws -> Void) throws {
            try inLoop { loop throws in
                let (promise, resolver) = try kind.make(loop) as (Promise<Value>, Resolver<Value>)
                let guarantee = promise.recover { _ -> Guarantee<Value> in fatalError("it is never rejected") }
                try settling.run(loop, settle: { resolver.fulfill(value) }) { try attach(guarantee) }
            }
        }
    }
}

extension APlusTests {
    /// The operators that call what the specification names onFulfilled; the last three call it whatever the outcome.
    enum OnFulfilled: CaseIterable {
        case map, then, done, get, tap, ensure, ensureThen

        /// Attaches `body`, which is given the value, and answers with the promise that the operator makes.
        @discardableResult
        func attach(to promise: Promise<Int>, _ body: @escaping (Int) -> Void) -> Promise<Void> {
            // The last three tell no value, so they ask the promise.
            let ask = { if let value = promise.settledValue { body(value) } }
            let result =
                switch self {
                case .map: promise.map { body($0) }
                case .then:
                    promise.then { value -> Promise<Void> in
                        body(value)
                        return .value
                    }
                case .done: promise.done { body($0) }
                case .get: promise.get { body($0) }.asVoid()
                case .tap: promise.tap { if case .success(let value) = $0 { body(value) } }.asVoid()
                case .ensure: promise.ensure { ask() }.asVoid()
                case .ensureThen:
                    promise.ensureThen {
                        ask()
                        return .value
                    }.asVoid()
                }
            result.ignoringErrors()
            return result
        }
    }

    /// The operators that call what the specification names onRejected; the last three call it whatever the outcome.
    enum OnRejected: CaseIterable {
        case `catch`, recover, recoverToAGuarantee, tap, ensure, ensureThen

        /// Attaches `body`, which is given the error.
        func attach(to promise: Promise<Int>, _ body: @escaping (any Error) -> Void) {
            let ask = { if let error = promise.error { body(error) } }
            switch self {
            case .catch: promise.catch { body($0) }
            case .recover:
                promise.recover { error -> Promise<Int> in
                    body(error)
                    return .value(0)
                }.ignoringErrors()
            case .recoverToAGuarantee:
                promise.recover { error -> Guarantee<Int> in
                    body(error)
                    return .value(0)
                }
            case .tap: promise.tap { if case .failure(let error) = $0 { body(error) } }.ignoringErrors()
            case .ensure: promise.ensure { ask() }.ignoringErrors()
            case .ensureThen:
                promise.ensureThen {
                    ask()
                    return .value
                }.ignoringErrors()
            }
        }
    }

    /// The operators of a guarantee.
    enum OnGuaranteed: CaseIterable {
        case map, then, done, get, tap

        func attach(to guarantee: Guarantee<Int>, _ body: @escaping (Int) -> Void) {
            switch self {
            case .map: _ = guarantee.map { body($0) }
            case .then:
                guarantee.then { value -> Guarantee<Void> in
                    body(value)
                    return .value
                }
            case .done: guarantee.done { body($0) }
            case .get: guarantee.get { body($0) }
            case .tap: guarantee.tap { if case .success(let value) = $0 { body(value) } }
            }
        }
    }
}

/// Something that is itself and nothing else: to see that a value or an error is the very same one.
final class Thing: Error, Sendable {}

extension Promise {
    /// The error, if it is a `PromiseError`.
    var promiseError: PromiseError? { error as? PromiseError }
}
