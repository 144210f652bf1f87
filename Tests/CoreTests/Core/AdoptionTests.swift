@testable import PromisesTestSupport

/// A promise that settles as another; AdoptedOutcomeTests has every shape and end.
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

    @Test(.inLoop) func handlersOfWhatWasReturnedRunBeforeThoseBehindTheHandler() throws {
        let loop = EventLoop.current
        var order: [Int] = []
        let (source, resolver) = Promise<Int>.pending()
        let inner = source.map { $0 }
        let outer = Promise.value(()).then { inner }
        outer.done { _ in order.append(0) }.orFail()
        try loop.run()
        inner.done { _ in order.append(1) }.orFail()
        outer.done { _ in order.append(2) }.orFail()
        inner.done { _ in order.append(3) }.orFail()
        resolver.fulfill(1)
        try loop.run()
        expectEqual(order, [1, 3, 0, 2])
    }

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
