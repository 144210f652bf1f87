@testable import PromisesTestSupport

/// A promise that settles as another; AdoptionOrderTests has every order in which the two are held, settled and
/// released.
struct AdoptionTests {
    @Test func aRejectionOfTheInnerIsReportedWithItsLine() throws {
        var line: UInt = 0
        let lines = try loggedInLoop { loop throws in
            line = #line + 1
            let (inner, resolver) = Promise<Int>.pending()
            let outer = Promise.value(()).then { inner }
            try loop.run()
            resolver.reject(Flaw(1))
            try loop.run()
            withExtendedLifetime(outer) {}
        }
        expectEqual(lines, ["unhandled rejection: Flaw(number: 1) (promise made at \(#fileID):\(line))"])
    }

    /// With one that adopts it, what it waits for may be handed on; each of several receives the outcome.
    @Test(.inLoop, arguments: 1...3) func aPromiseThatOnlyItsAdoptersKnowWaitsOnceMore(count: Int) throws {
        let loop = EventLoop.current
        let (gate, open) = Promise<Void>.pending()
        let (inner, resolver) = Promise<Int>.pending()
        let outers = {
            let middle = gate.then { inner }
            return (0..<count).map { _ in Promise.value(()).then { middle } }
        }()
        try loop.run()
        open.fulfill()
        try loop.run()
        expect(outers.allSatisfy(\.isPending))
        resolver.fulfill(1)
        try loop.run()
        expectEqual(outers.map(\.settledValue), Array(repeating: 1, count: count))
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
