@testable import Promises
@testable import PromisesTestSupport

/// Combinators that are settled on creation do nothing to their sources inside the call: the caller may still attach
/// handlers to them, as with a combinator that settles later.
struct WonRacesTests {
    private let loop = EventLoop.current

    @Test(.inLoop) func aHandlerOnTheNextLineKeepsALoserGoing() throws {
        let slow = after(.seconds(1)).map { 2 }.asPromise()
        let winner = race(slow, .value(1))
        var seen: Int?
        slow.done { seen = $0 }.orFail()
        expectEqual(winner.settledValue, 1)
        try loop.run()
        expectEqual(seen, 2)
    }

    @Test(.inLoop) func oneWithoutAWaiterIsCancelledInTheNextTurn() throws {
        let slow = after(.seconds(1)).map { 2 }.asPromise()
        let winner = race(fulfilled: [slow, .value(1)])
        expect(winner.settledValue == 1 && slow.isPending)
        try loop.turn(.poll)
        expect(slow.error as? PromiseError == .cancelled && !loop.isAlive)
    }

    @Test(.inLoop) func theResultMayGoMeanwhile() throws {
        let slow = after(.seconds(1)).map { 2 }.asPromise()
        race(slow, .value(1)).ignoringErrors()
        try loop.run()
        expect(slow.isRejected && loop.now.nanoseconds == 0)
    }

    @Test(.inLoop) func aLoopThatEndsFirstCancelsNone() {
        let lines = logged {
            let (promise, resolver) = Promise<Int>.pending()
            inLoop { _ in race(promise, .value(1)).ignoringErrors() }
            expect(promise.isPending)
            resolver.fulfill(1)
        }
        expectEqual(lines.count, 1, "that handlers were left behind")
    }

    @Test(.inLoop) func aWhenThatHasFailedAndATimeoutOfZero() throws {
        let slow = after(.seconds(1)).map { 2 }.asPromise()
        let all = when(fulfilled: [slow, Promise(error: Flaw(1))])
        let limited = slow.timeout(.zero)
        var seen: Int?
        slow.done { seen = $0 }.orFail()
        try loop.run()
        expect(all.flaw == Flaw(1) && limited.error as? PromiseError == .timedOut && seen == 2)
        all.ignoringErrors()
    }
}
