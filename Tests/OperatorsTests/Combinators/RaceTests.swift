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
}
