@testable import PromisesTestSupport

/// A promise that settles as another; AdoptedOutcomeTests has every shape and end.
struct AdoptionTests {
    /// The inner one is linked, and nothing but its source's list refers to it.
    @Test(.inLoop, arguments: [false, true], [false, true])
    func aLinkedPromiseThatOnlyItsSourceKeeps(isSettledElsewhere: Bool, isFulfilled: Bool) throws {
        let (source, resolver) = Promise<Int>.pending()
        let outer = {
            let inner = source.tap { _ in }
            return Promise.value(()).then { inner }
        }()
        try EventLoop.current.run()
        let settle = { @Sendable in _ = isFulfilled ? resolver.fulfill(1) : resolver.reject(Flaw(1)) }
        if isSettledElsewhere { TestThread.run(settle) } else { settle() }
        try EventLoop.current.run()
        expect(outer.settledValue == (isFulfilled ? 1 : nil) && outer.flaw == (isFulfilled ? nil : Flaw(1)))
    }

    @Test func aHandlerThatIsLinkedAndNeverRuns() throws {
        let tally = Tally()
        let lines = try loggedInLoop { loop throws in
            let (source, resolver) = Promise<Tally.Token>.pending()
            let token = tally.token()
            Promise.value(()).then {
                source.map { value -> Int in
                    token.use()
                    return 1
                }
            }.orFail()
            try loop.run()
            // The loop ends before it can run.
            resolver.fulfill(tally.token())
        }
        expectEqual(tally.alive, 0)
        expectEqual(lines, ["an event loop ended with 2 undelivered handlers"])
    }
}

/// APlusCircleTests has the circles of promises.
struct ReturnedSelfAdoptionTests {
    @Test(.ownThread) func aGuaranteeTraps() async {
        await #expect(processExitsWith: .failure) {
            inLoop { _ in
                var guarantee: Guarantee<Int>?
                guarantee = Guarantee.value(1).then { _ in guarantee! }
                hang(guarantee!)
            }
        }
        await #expect(processExitsWith: .failure) {
            inLoop { _ in
                var guarantee: Guarantee<Int>?
                guarantee = Promise<Int>(error: Flaw()).recover { _ in guarantee! }
                hang(guarantee!)
            }
        }
    }
}
