import Promises
import Reactor
import Synchronization
import TestSupport

@testable import PromisesTestSupport

extension APlusTests {
    /// A thenable of another library: calls its handlers with the outcomes that the test gives, as often as it gives them.
    final class Foreign<T: Sendable>: Catchable, Sendable {
        private typealias Handler = @Sendable (Result<T, any Error>) -> Void
        private struct State {
            var outcomes: [Result<T, any Error>]
            var handlers: [Handler] = []
            var count = 0
        }
        private let state: Mutex<State>

        /// - Parameter outcomes: what every handler is called with inside `pipe`, one after the other.
        init(_ outcomes: [Result<T, any Error>]) { state = Mutex(State(outcomes: outcomes)) }

        var result: Result<T, any Error>? { state.withLock { $0.outcomes.first } }

        /// How often `pipe` has been called.
        var count: Int { state.withLock { $0.count } }

        func pipe(to handler: @escaping @Sendable (Result<T, any Error>) -> Void) {
            let outcomes = state.withLock {
                $0.handlers.append(handler)
                $0.count += 1
                return $0.outcomes
            }
            for outcome in outcomes { handler(outcome) }
        }

        func asPromise() -> Promise<T> { Promise { seal in pipe { seal.resolve($0) } } }

        /// Calls all handlers.
        func call(_ outcome: Result<T, any Error>) {
            let handlers = state.withLock {
                $0.outcomes.append(outcome)
                return $0.handlers
            }
            for handler in handlers { handler(outcome) }
        }

        /// Lets all handlers go.
        func forget() {
            let handlers = state.withLock { state in
                defer { state.handlers = [] }
                return state.handlers
            }
            withExtendedLifetime(handlers) {}
        }
    }

    /// A thenable that is made of another and leaves everything to it.
    struct Wrapped<Inner: Thenable>: Catchable where Inner.T: Sendable {
        let inner: Inner

        init(_ inner: Inner) { self.inner = inner }

        var result: Result<Inner.T, any Error>? { inner.result }

        func pipe(to handler: @escaping @Sendable (Result<Inner.T, any Error>) -> Void) { inner.pipe(to: handler) }

        func asPromise() -> Promise<Inner.T> { Promise { seal in pipe { seal.resolve($0) } } }
    }

    /// How a foreign thenable calls.
    enum Manner: CaseIterable {
        /// Inside `pipe`.
        case inline
        /// In the turn in which it was adopted.
        case atOnce
        case laterByAJob
        case laterByATimer
        case fromAnotherThread

        /// Runs `call` in this manner.
        func run(_ loop: EventLoop, _ call: @escaping @Sendable () -> Void) throws {
            switch self {
            case .inline, .atOnce: call()
            case .laterByAJob: loop.enqueue(call)
            case .laterByATimer: loop.schedule(after: .seconds(1), call)
            case .fromAnotherThread: TestThread.run(call)
            }
            try loop.run()
        }
    }

    /// The ways in which a promise settles as a foreign thenable.
    enum Way: CaseIterable {
        case initializer, then, thenOfAGuarantee, recover, firstly, operators

        func adopt<Other: Catchable>(_ other: Other) -> Promise<Int> where Other.T == Int {
            switch self {
            case .initializer: Promise(other)
            case .then: Promise.value(()).then { other }
            case .thenOfAGuarantee: Guarantee.value(()).then { other }
            case .recover: Promise<Int>(error: Flaw()).recover { _ in other }
            case .firstly: Promises.firstly { other }
            case .operators: other.map { $0 }
            }
        }
    }

    /// Whether the promise has this outcome.
    static func isSame(_ promise: Promise<Int>, _ outcome: Result<Int, any Error>) -> Bool {
        switch outcome {
        case .success(let value): promise.settledValue == value
        case .failure(let error): promise.flaw == error as? Flaw
        }
    }
}
