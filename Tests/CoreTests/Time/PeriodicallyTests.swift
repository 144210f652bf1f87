@testable import PromisesTestSupport

/// `periodically`.
struct PeriodicallyTests {
    private let loop = EventLoop.current

    /// The start times of rounds with the given lengths and a period of ten, all in seconds.
    private func begins(_ lengths: [Int]) throws -> [Int64] {
        try inLoop { loop throws in
            var seen: [Int64] = []
            func round() -> Guarantee<Bool> {
                seen.append(loop.now.nanoseconds / 1_000_000_000)
                let isLast = seen.count == lengths.count
                return after(.seconds(lengths[seen.count - 1])).map { !isLast }
            }
            try hang(periodically(every: .seconds(10)) { round() })
            expect(!loop.isAlive)
            return seen
        }
    }

    @Test(.inLoop) func aRoundBeginsAPeriodAfterTheLastOneOrAtOnce() throws {
        expectEqual(try begins([1, 0, 9, 10, 1]), [0, 10, 20, 30, 40])
        // If a round is a little late, the next one is on time again; if it is later than a period, the schedule
        // restarts.
        expectEqual(try begins([12, 1, 1, 25, 1, 1]), [0, 12, 20, 30, 55, 65])
        expectEqual(try begins([3]), [0])
    }

    @Test(.inRealTime) func theWorkOfTheTurnDoesNotDelayTheNextRound() throws {
        let loop = EventLoop.current
        let begin = loop.now
        var made = begin
        var deadline: LoopInstant?
        let rounds = periodically(every: .seconds(10)) { () -> Promise<Bool> in
            // The inner job runs when the pause has begun, and takes longer than the call of `periodically` has.
            loop.enqueue {
                loop.enqueue {
                    let start = ContinuousClock.now
                    while start.duration(to: .now) < .milliseconds(1) + begin.duration(to: made) {}
                    deadline = loop.nextDeadline
                }
            }
            return .value(true)
        }
        made = loop.now
        while deadline == nil { try loop.turn(.poll) }
        expect(deadline! <= made + .seconds(10))
        rounds.cancel()
    }

    @Test(.inLoop, arguments: [Duration.zero, .seconds(-1)]) func withoutAPause(period: Duration) throws {
        var rounds = 0
        try hang(
            periodically(every: period) { () -> Promise<Bool> in
                rounds += 1
                return .value(rounds < 1000)
            })
        expect(rounds == 1000 && loop.now.nanoseconds == 0)
    }

    @Test(.inLoop) func anErrorEndsIt() throws {
        var rounds = 0
        let thrown = periodically(every: .seconds(1)) { () throws -> Promise<Bool> in
            rounds += 1
            if rounds == 3 { throw Flaw(1) }
            return .value(true)
        }
        expect(thrown, failsWith: Flaw(1))
        expect(rounds == 3 && !loop.isAlive)
        expect(periodically(every: .seconds(1)) { Promise<Bool>(error: Flaw(2)) }, failsWith: Flaw(2))
    }

    /// In a round, and in a pause.
    @Test(.inLoop, arguments: [false, true]) func aCancellationEndsTheRoundOrThePause(isInPause: Bool) throws {
        var (begins, stops) = (0, 0)
        let rounds = periodically(every: .seconds(10)) { () -> Promise<Bool> in
            begins += 1
            let (promise, resolver) = Promise<Bool>.pending()
            resolver.onCancel { stops += 1 }
            after(.seconds(1)).done { resolver.fulfill(true) }
            return promise
        }
        hang(after(.milliseconds(isInPause ? 15_000 : 10_500)))
        rounds.cancel()
        try loop.run()
        expect(rounds.isCancelled && begins == 2 && stops == (isInPause ? 0 : 1))
        expect(loop.now.nanoseconds <= 15_000_000_000)
    }
}
