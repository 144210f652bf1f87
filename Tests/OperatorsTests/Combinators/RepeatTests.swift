@testable import PromisesTestSupport

/// `repeatWhile`.
struct RepeatTests {
    private let loop = EventLoop.current

    @Test(.inLoop) func asLongAsItGivesTrue() throws {
        var rounds = 0
        let end = repeatWhile { () -> Promise<Bool> in
            rounds += 1
            return after(.seconds(1)).map { rounds < 4 }.asPromise()
        }
        expectEqual(rounds, 1, "the first at once")
        try hang(end)
        expect(rounds == 4 && loop.now.nanoseconds == 4_000_000_000)
    }

    @Test(.inLoop) func anErrorEndsIt() throws {
        var left = 3
        let thrown = repeatWhile { () throws -> Promise<Bool> in
            left -= 1
            if left == 0 { throw Flaw(1) }
            return .value(true)
        }
        expect(thrown, failsWith: Flaw(1))
        expectEqual(left, 0)
        expectEqual(repeatWhile { () throws -> Promise<Bool> in throw Flaw(2) }.flaw, Flaw(2))
        expect(repeatWhile { Promise<Bool>(error: Flaw(3)) }, failsWith: Flaw(3))
    }

    @Test(.inLoop) func anEndlessOneLeavesTurnsToOthers() throws {
        var rounds = 0
        let endless = repeatWhile { () -> Promise<Bool> in
            rounds += 1
            return .value(true)
        }
        hang(after(.zero))
        expect(rounds < 10_000)
        endless.cancel()
        let before = rounds
        try loop.run()
        expect(rounds == before && endless.error as? PromiseError == .cancelled)
    }

    @Test(.inLoop) func cancellingStopsTheRoundAtHand() throws {
        let tally = Tally()
        var stops = 0
        let endless = { () -> Promise<Void> in
            let token = tally.token()
            return repeatWhile { () -> Promise<Bool> in
                token.use()
                return Promise<Bool> { resolver in
                    resolver.onCancel { stops += 1 }
                    loop.schedule(after: .seconds(1)) { resolver.fulfill(true) }.unref()
                }
            }
        }()
        hang(after(.milliseconds(3500)))
        endless.cancel()
        expect(endless.isRejected && tally.alive == 0)
        try loop.run()
        expectEqual(stops, 1)
    }
}
