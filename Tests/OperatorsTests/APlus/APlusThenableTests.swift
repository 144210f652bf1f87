@testable import PromisesTestSupport

extension APlusTests {
    /// 2.3.3, of which the protocol `Thenable` remains in a typed language: `pipe` is the foreign `then`, and its
    /// handler is resolvePromise and rejectPromise in one.
    struct APlusThenableTests {
        @Test(
            "2.3.3.3 pipe is called once, at once; of the calls of its handler the first counts", .inLoop,
            arguments: Way.allCases, Manner.allCases)
        func theFirstCallCounts(way: Way, manner: Manner) throws {
            for (first, second) in zip(outcomes + outcomes, [.success(8), .failure(Flaw(8))] + outcomes.reversed()) {
                let foreign = Foreign(manner == .inline ? [first, second] : [])
                let outer = way.adopt(foreign)
                try EventLoop.current.turn(.poll)
                let call = { @Sendable in for outcome in [first, second, .success(9)] { foreign.call(outcome) } }
                if manner == .onAnotherThread { TestThread.run(call) } else { call() }
                try EventLoop.current.run()
                expectEqual(foreign.pipes, 1)
                expectEqual(outer.result.map { "\($0)" }, "\(first)")
            }
        }

        @Test("2.3.3.3.4 an error that the body throws rejects, unless the promise has settled")
        func throwsInTheBody() {
            var resolver: Resolver<Int>?
            let thrown = Promise<Int> {
                resolver = $0
                throw Flaw(2)
            }
            resolver?.fulfill(1)
            expectEqual(thrown.flaw, Flaw(2))
            for outcome in outcomes {
                let settled = Promise<Int> {
                    $0.resolve(outcome)
                    throw Flaw(2)
                }
                expectEqual(settled.result.map { "\($0)" }, "\(outcome)")
            }
            expectEqual(firstly { () throws -> Promise<Int> in throw Flaw(3) }.flaw, Flaw(3))
        }
    }

    /// The ways in which a foreign thenable calls.
    enum Manner: CaseIterable { case inline, later, onAnotherThread }

    /// The ways in which a promise settles as a foreign thenable.
    enum Way: CaseIterable {
        case initializer, then, thenOfAGuarantee, recover, firstly, operators

        func adopt(_ other: Foreign) -> Promise<Int> {
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
}

/// A thenable of another library: calls its handlers with the outcomes that the test supplies, as often as it does.
final class Foreign: Catchable, Sendable {
    private let outcomes: Shared<[Result<Int, any Error>]>
    private let handlers = Shared<[@Sendable (Result<Int, any Error>) -> Void]>([])

    /// - Parameter outcomes: the arguments of every handler inside `pipe`, one after the other.
    init(_ outcomes: [Result<Int, any Error>]) { self.outcomes = Shared(outcomes) }

    var result: Result<Int, any Error>? { outcomes.value.first }

    /// The number of calls of `pipe`.
    var pipes: Int { handlers.value.count }

    func pipe(to handler: @escaping @Sendable (Result<Int, any Error>) -> Void) {
        handlers.change { $0.append(handler) }
        for outcome in outcomes.value { handler(outcome) }
    }

    func asPromise() -> Promise<Int> { Promise { seal in pipe { seal.resolve($0) } } }

    /// Calls all handlers.
    func call(_ outcome: Result<Int, any Error>) {
        outcomes.change { $0.append(outcome) }
        for handler in handlers.value { handler(outcome) }
    }
}

/// The operators of a thenable of another library.
struct ThenableTests {
    private let three = Foreign([.success(3)])
    private let failed = Foreign([.failure(Flaw(1))])

    @Test(.inLoop) func hasTheVocabularyOfPromises() throws {
        expect(three.map { $0 + 1 }, gives: 4)
        expect(three.then { Promise.value("\($0)") }, gives: "3")
        expect(three.get { _ in }, gives: 3)
        expect(three.tap { _ in }, gives: 3)
        var events: [String] = []
        try hang(three.done { events.append("\($0)") })
        try hang(three.asVoid())
        expect(failed.recover { _ in Promise.value(5) }, gives: 5)
        expect(failed.recover { _ in Guarantee.value(6) }, gives: 6)
        expect(failed.ensure { events.append("ensure") }, failsWith: Flaw(1))
        expect(failed.ensureThen { after(.seconds(1)) }, failsWith: Flaw(1))
        failed.catch { _ in events.append("catch") }.finally { events.append("finally") }
        try EventLoop.current.run()
        expectEqual(events, ["3", "ensure", "catch", "finally"])
    }

    @Test(.inLoop) func hasTheStatesAndGoesIntoCombinators() {
        let slow = Foreign([])
        expect(slow.isPending && three.isFulfilled && failed.isRejected && failed.flaw == Flaw(1))
        expectEqual(when(fulfilled: [three, three]).settledValue, [3, 3])
        expectEqual(when(fulfilled: three, Promise.value("a")).settledValue?.0, 3)
        expectEqual(race(slow, three).settledValue, 3)
        expectEqual(when(fulfilled: [three, failed]).flaw, Flaw(1))
        slow.call(.success(4))
    }
}
