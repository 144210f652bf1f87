@testable import PromisesTestSupport

struct RaceTests {
    @Test(.inLoop) func theFirstToSettleWins() throws {
        let loop = EventLoop.current
        let winner = race((1...3).map { number in after(.seconds(4 - number)).map { number } })
        expect(winner, gives: 3)
        expectEqual(loop.now.nanoseconds, 1_000_000_000)
        try loop.run()
    }

    @Test func ofSeveralSettledAlreadyTheFirstInTheListWins() {
        expectEqual(race(Promise.value(1), Promise.value(2)).settledValue, 1)
        let (pending, resolver) = Promise<Int>.pending()
        expectEqual(race(pending, Promise(error: Flaw(1)), Promise.value(2)).flaw, Flaw(1))
        resolver.fulfill(3)
    }

    @Test func anEmptyListIsBadInput() {
        let empty = race([Promise<Int>]())
        expect(empty.error as? PromiseError == .badInput("race of an empty list"))
    }

    /// The promise of a combinator with one source is linked; with more it is waited for.
    @Test(arguments: 1...3) func oneThatAHandlerReturnsEndsOnce(count: Int) throws {
        for outcomes in 0..<(1 << count) {
            try inLoop { loop throws in
                let pairs = (0..<count).map { _ in Promise<Int>.pending() }
                let raced = Promise.value(()).then { race(pairs.map(\.promise)) }
                let gathered = Promise.value(()).then { when(fulfilled: pairs.map(\.promise)) }
                var ends = 0
                for promise in [raced.asVoid(), gathered.asVoid()] { promise.ensure { ends += 1 }.ignoringErrors() }
                try loop.run()
                for (index, pair) in pairs.enumerated() {
                    if outcomes & (1 << index) == 0 {
                        pair.resolver.reject(Flaw(index))
                    } else {
                        pair.resolver.fulfill(index)
                    }
                }
                try loop.run()
                expect(outcomes & 1 == 0 ? raced.flaw == Flaw(0) : raced.settledValue == 0)
                let failed = (0..<count).first { outcomes & (1 << $0) == 0 }
                expectEqual(gathered.flaw, failed.map(Flaw.init))
                expectEqual(gathered.settledValue, failed == nil ? Array(0..<count) : nil)
                expectEqual(ends, 2)
            }
        }
    }
}
