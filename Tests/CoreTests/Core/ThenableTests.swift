import Synchronization

@testable import PromisesTestSupport

/// A thenable defined by a user: settled from the start, or by `settle`, without a promise inside.
private final class Wish<T: Sendable>: Catchable, Sendable {
    private struct State {
        var result: Result<T, any Error>?
        var handlers: [@Sendable (Result<T, any Error>) -> Void] = []
    }
    private let state: Mutex<State>

    init(_ result: Result<T, any Error>? = nil) { state = Mutex(State(result: result)) }

    var result: Result<T, any Error>? { state.withLock { $0.result } }

    func pipe(to handler: @escaping @Sendable (Result<T, any Error>) -> Void) {
        let settled = state.withLock { state in
            if state.result == nil { state.handlers.append(handler) }
            return state.result
        }
        if let settled { handler(settled) }
    }

    func asPromise() -> Promise<T> { Promise { seal in pipe { seal.resolve($0) } } }

    func settle(_ result: Result<T, any Error>) {
        let handlers = state.withLock { state in
            state.result = result
            defer { state.handlers = [] }
            return state.handlers
        }
        for handler in handlers { handler(result) }
    }
}

struct ThenableTests {
    private let loop = EventLoop.current
    private var three: Wish<Int> { Wish(.success(3)) }
    private var failed: Wish<Int> { Wish(.failure(Flaw(1))) }

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
        expect(Wish<Int>().isPending)
    }

    @Test(.inLoop) func isReturnedFromHandlers() throws {
        expect(Promise.value(1).then { value in Wish<Int>(.success(value + 1)) }, gives: 2)
        expect(firstly { three }, gives: 3)
        expect(Promise<Int>(error: Flaw()).recover { _ in Wish<Int>(.success(4)) }, gives: 4)
    }

    @Test(.inLoop) func goesIntoCombinators() throws {
        let all = when(fulfilled: [three, three])
        expectEqual(all.settledValue, [3, 3])
        let both = when(fulfilled: three, Promise.value("a"))
        expectEqual(both.settledValue?.0, 3)
        let slow = Wish<Int>()
        expectEqual(race(slow, three).settledValue, 3)
        slow.settle(.success(4))
        expectEqual(when(fulfilled: [three, failed]).flaw, Flaw(1))
    }

    @Test(.inLoop) func settlesLater() throws {
        let wish = Wish<Int>()
        let promise = wish.map { $0 * 2 }
        loop.schedule(after: .seconds(1)) { wish.settle(.success(4)) }
        expect(promise, gives: 8)
    }
}
