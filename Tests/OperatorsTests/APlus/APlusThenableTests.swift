import Synchronization

@testable import PromisesTestSupport

extension APlusTests {
    /// 2.3.3, of which the protocol `Thenable` remains in a typed language: `pipe` is the foreign `then`, and its
    /// handler is resolvePromise and rejectPromise in one.
    struct APlusThenableTests {
        private let loop = EventLoop.current

        @Test("2.3.3.3 pipe is called once, at once, with a handler", .inLoop, arguments: Way.allCases)
        func pipeIsCalledOnce(way: Way) throws {
            let foreign = Foreign<Int>([])
            var calls: [Int] = []
            let outer = way.adopt(foreign)
            loop.enqueue { calls.append(foreign.count) }
            try loop.turn(.poll)
            foreign.call(.success(1))
            try loop.run()
            expectEqual(calls, [1])
            expectEqual(foreign.count, 1)
            expectEqual(outer.settledValue, 1)
        }

        @Test("2.3.3.3.1 to 2.3.3.3.3 of its calls the first counts", .inLoop, arguments: Way.allCases, Manner.allCases)
        func theFirstCallCounts(way: Way, manner: Manner) throws {
            let outcomes: [Result<Int, any Error>] = [.success(1), .success(2), .failure(Flaw(1)), .failure(Flaw(2))]
            for first in outcomes {
                expect(isSame(try run(way, manner, [first]), first), "\(first)")
                for second in outcomes {
                    let outer = try run(way, manner, [first, second, .success(9)])
                    expect(isSame(outer, first), "\(first), then \(second)")
                }
            }
        }

        @Test("2.3.3.3 a thenable that lets the handler go uncalled has abandoned the promise", .inLoop)
        func thatNeverCalls() throws {
            let lines = try loggedInLoop { loop throws in
                let foreign = Foreign<Int>([])
                let outer = Promise.value(()).then { foreign }
                try loop.run()
                expect(outer.isPending)
                foreign.forget()
                try loop.run()
                expectEqual(outer.promiseError, .abandoned)
            }
            expectEqual(lines.count, 1)
        }

        @Test("2.3.3.3.4.1 an error thrown after settling is ignored", .inLoop, arguments: Settling.allCases)
        func throwsAfterSettling(settling: Settling) throws {
            let fulfilled = Promise<Int> { resolver in
                resolver.fulfill(1)
                throw Flaw(2)
            }
            let rejected = Promise<Int> { resolver in
                resolver.reject(Flaw(1))
                throw Flaw(2)
            }
            var seen: [String] = []
            try settling.run(loop, settle: {}) {
                fulfilled.tap { if case .success(let value) = $0 { seen.append("\(value)") } }.orFail()
                rejected.catch { seen.append("\($0)") }
            }
            expectEqual(seen, ["1", "Flaw(number: 1)"])
        }

        @Test("2.3.3.3.4.2 an error thrown before settling rejects", .inLoop, arguments: Settling.allCases)
        func throwsBeforeSettling(settling: Settling) throws {
            var resolvers: [Resolver<Int>] = []
            let promise = Promise<Int> { resolver in
                resolvers.append(resolver)
                throw Flaw(2)
            }
            let step = firstly { () throws -> Promise<Int> in throw Flaw(3) }
            var seen: [String] = []
            try settling.run(loop, settle: { resolvers[0].fulfill(1) }) {
                promise.catch { seen.append("\($0)") }
                step.catch { seen.append("\($0)") }
            }
            expectEqual(seen, ["Flaw(number: 2)", "Flaw(number: 3)"])
            expectEqual(promise.flaw, Flaw(2))
        }

        /// Lets a foreign thenable be adopted in one way, and call back in some manner with each of `outcomes`.
        private func run(_ way: Way, _ manner: Manner, _ outcomes: [Result<Int, any Error>]) throws -> Promise<Int> {
            try inLoop { loop throws in
                let foreign = Foreign<Int>(manner == .inline ? outcomes : [])
                let outer = way.adopt(foreign)
                try loop.turn(.poll)
                try manner.run(loop) { for outcome in outcomes { foreign.call(outcome) } }
                try loop.run()
                return outer
            }
        }
    }
}

extension APlusTests {
    /// A thenable of another library: calls its handlers with the outcomes that the test supplies, as often as it does.
    final class Foreign<T: Sendable>: Catchable, Sendable {
        private typealias Handler = @Sendable (Result<T, any Error>) -> Void
        private struct State {
            var outcomes: [Result<T, any Error>]
            var handlers: [Handler] = []
            var count = 0
        }
        private let state: Mutex<State>

        /// - Parameter outcomes: the arguments of every handler inside `pipe`, one after the other.
        init(_ outcomes: [Result<T, any Error>]) { state = Mutex(State(outcomes: outcomes)) }

        var result: Result<T, any Error>? { state.withLock { $0.outcomes.first } }

        /// The number of calls of `pipe`.
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

        /// Releases all handlers.
        func forget() {
            let handlers = state.withLock { state in
                defer { state.handlers = [] }
                return state.handlers
            }
            withExtendedLifetime(handlers) {}
        }
    }

    /// The ways in which a foreign thenable calls.
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

    /// True if the promise has this outcome.
    static func isSame(_ promise: Promise<Int>, _ outcome: Result<Int, any Error>) -> Bool {
        switch outcome {
        case .success(let value): promise.settledValue == value
        case .failure(let error): promise.flaw == error as? Flaw
        }
    }
}

/// The operators of a thenable of another library.
struct ThenableTests {
    private let loop = EventLoop.current
    private var three: APlusTests.Foreign<Int> { APlusTests.Foreign([.success(3)]) }
    private var failed: APlusTests.Foreign<Int> { APlusTests.Foreign([.failure(Flaw(1))]) }

    @Test(.inLoop) func hasTheVocabularyOfValues() throws {
        expect(three.map { $0 + 1 }, gives: 4)
        expect(three.then { Promise.value("\($0)") }, gives: "3")
        expect(three.get { _ in }, gives: 3)
        expect(three.tap { _ in }, gives: 3)
        expect(three.asPromise(), gives: 3)
        expect(Promise(three), gives: 3)
        var seen = 0
        try hang(three.done { seen = $0 })
        try hang(three.asVoid())
        expectEqual(seen, 3)
    }

    @Test(.inLoop) func hasTheVocabularyOfErrors() throws {
        expect(failed.recover { _ in Promise.value(5) }, gives: 5)
        expect(failed.recover { _ in Guarantee.value(6) }, gives: 6)
        var events: [String] = []
        expect(failed.ensure { events.append("ensure") }, failsWith: Flaw(1))
        expect(failed.ensureThen { after(.seconds(1)) }, failsWith: Flaw(1))
        failed.catch { _ in events.append("catch") }.finally { events.append("finally") }
        try loop.run()
        expectEqual(events, ["ensure", "catch", "finally"])
    }

    @Test(.inLoop) func hasTheStates() {
        expect(three.isFulfilled && three.settledValue == 3 && failed.isRejected && failed.flaw == Flaw(1))
        expect(APlusTests.Foreign<Int>([]).isPending)
    }

    @Test(.inLoop) func isReturnedFromHandlers() throws {
        expect(Promise.value(1).then { value in APlusTests.Foreign([.success(value + 1)]) }, gives: 2)
        expect(firstly { three }, gives: 3)
        expect(Promise<Int>(error: Flaw()).recover { _ in APlusTests.Foreign<Int>([.success(4)]) }, gives: 4)
    }

    @Test(.inLoop) func goesIntoCombinators() throws {
        let all = when(fulfilled: [three, three])
        expectEqual(all.settledValue, [3, 3])
        let both = when(fulfilled: three, Promise.value("a"))
        expectEqual(both.settledValue?.0, 3)
        let slow = APlusTests.Foreign<Int>([])
        expectEqual(race(slow, three).settledValue, 3)
        slow.call(.success(4))
        expectEqual(when(fulfilled: [three, failed]).flaw, Flaw(1))
    }

    @Test(.inLoop) func settlesLater() throws {
        let foreign = APlusTests.Foreign<Int>([])
        let promise = foreign.map { $0 * 2 }
        loop.schedule(after: .seconds(1)) { foreign.call(.success(4)) }
        expect(promise, gives: 8)
    }
}
