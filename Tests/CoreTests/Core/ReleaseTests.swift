@testable import PromisesTestSupport

/// Values, sources and waiting chains are released as soon as nothing needs them; ClosureReleaseTests has the handlers.
struct ReleaseTests {
    private let loop = EventLoop.current
    private let tally = Tally()

    @Test(.inLoop) func aPipeGoesWhenItHasRunOrNeverWill() throws {
        let lines = try loggedInLoop { loop throws in
            for end in 0..<3 {
                let (promise, resolver) = Promise<Int>.pending()
                let token = tally.token()
                promise.pipe { _ in token.use() }
                switch end {
                case 0: resolver.fulfill(1)
                case 1: resolver.reject(Flaw())
                default: break
                }
            }
            expectEqual(tally.alive, 0)
        }
        expectEqual(lines.count, 1)
    }

    @Test(.inLoop) func combinatorsThatHaveSettledKeepNoSource() throws {
        try inLoop { loop throws in
            let race = Promises.race(Promise.value(tally.token()), Promise.value(tally.token()))
            expectEqual(tally.alive, 1, "the winner's value")
            let (late, resolver) = Promise<Tally.Token>.pending()
            late.ignoringErrors()
            let other = { Promises.race(late, Promise.value(tally.token())) }()
            resolver.fulfill(tally.token())
            try loop.run()
            expectEqual(tally.alive, 3, "another winner's, and that of the loser, which is held here")
            let failed = when(fulfilled: [Promise.value(tally.token()), Promise(error: Flaw())])
            expectEqual(failed.flaw, Flaw())
            expectEqual(tally.alive, 3)
            withExtendedLifetime((race, other, failed, late)) {}
        }
        expectEqual(tally.alive, 0)
    }
}
