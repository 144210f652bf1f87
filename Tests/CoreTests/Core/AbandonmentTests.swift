@testable import PromisesTestSupport

struct AbandonmentTests {
    private func report(_ line: UInt) -> [String] {
        ["the promise made at \(#fileID):\(line) was abandoned: its last resolver was released without settling it"]
    }

    @Test func ofAnInitializer() throws {
        var line: UInt = 0
        let lines = logged {
            line = #line + 1
            let promise = Promise<Int> { _ in }
            expect(promise, failsWith: PromiseError.abandoned)
        }
        expectEqual(lines, report(line))
    }

    @Test func isLoggedAlsoIfThePromiseWasReleased() {
        var line: UInt = 0
        let lines = logged {
            line = #line + 1
            _ = Promise<Int>.pending()
        }
        expectEqual(lines, report(line))
    }

    @Test func onlyTheLastCopyCounts() {
        var line: UInt = 0
        let lines = logged {
            line = #line + 1
            let (promise, resolver) = Promise<Int>.pending()
            var copies = [resolver, resolver]
            _ = consume resolver
            copies.removeLast()
            expect(promise.isPending)
            copies.removeLast()
            expect(promise.error as? PromiseError == .abandoned)
        }
        expectEqual(lines, report(line))
    }

    @Test func isReportedBeforeAnythingLearnsOfIt() {
        let order = Shared<[String]>([])
        let line: UInt = 77
        let recorder = LogRecorder(
            where: { $0.description.contains("\(#fileID):\(line)") },
            reaction: { _ in order.change { $0.append("report") } })
        do {
            let (promise, resolver) = Promise<Int>.pending(#fileID, line)
            promise.pipe { _ in order.change { $0.append("handler") } }
            withExtendedLifetime(resolver) {}
        }
        recorder.stop()
        expectEqual(order.value, ["report", "handler"])
    }

    @Test func aSettledPromiseIsNotAbandoned() {
        let lines = logged {
            let promise = Promise<Int> { $0.fulfill(1) }
            expectEqual(promise.settledValue, 1)
            let failed = Promise<Int> { $0.reject(Flaw(1)) }
            expectEqual(failed.flaw, Flaw(1))
            _ = Guarantee<Int> { $0(1) }
        }
        expectEqual(lines, [])
    }

    @Test func theChainBelowLearnsOfItAndIsReportedOnce() throws {
        var line: UInt = 0
        let lines = try loggedInLoop { loop throws in
            var seen: [PromiseError?] = []
            line = #line + 1
            Promise<Int> { _ in }.map { $0 + 1 }.then { Promise.value($0) }.done { _ in }
                .catch { seen.append($0 as? PromiseError) }
            try loop.run()
            expectEqual(seen, [.abandoned])
        }
        expectEqual(lines, report(line))
    }

    @Test func aDerivedPromiseThatIsReleasedIsNotReported() throws {
        let lines = try loggedInLoop { loop throws in
            let (promise, resolver) = Promise<Int>.pending()
            _ = promise.map { $0 }
            promise.ignoringErrors()
            resolver.fulfill(1)
            try loop.run()
        }
        expectEqual(lines, [])
    }

    @Test func combinatorsPassItOn() throws {
        let lines = logged {
            let all = when(fulfilled: [Promise<Int> { _ in }, .value(1)])
            expect(all.error as? PromiseError == .abandoned)
            let first = race(Promise<Int> { _ in }, .value(1))
            expect(first.error as? PromiseError == .abandoned)
        }
        expectEqual(lines.count, 2)
    }

    @Test func aLoserOfARaceWasCancelledBefore() throws {
        let lines = try loggedInLoop { loop throws in
            let (loser, resolver) = Promise<Int>.pending()
            expectEqual(race(Promise.value(1), loser).settledValue, 1)
            // By a job.
            try loop.turn(.poll)
            _ = consume resolver
        }
        expectEqual(lines, [])
    }

    @Test func aLoserOfARaceThatIsWantedIsReportedAtItsOwnLine() {
        var line: UInt = 0
        let lines = logged {
            line = #line + 1
            let (loser, resolver) = Promise<Int>.pending()
            loser.ignoringErrors()
            expectEqual(race(Promise.value(1), loser).settledValue, 1)
            _ = consume resolver
        }
        expectEqual(lines, report(line))
    }

    @Test func aGuaranteeCanOnlyBeLogged() throws {
        var line: UInt = 0
        let lines = try loggedInLoop { loop throws in
            line = #line + 1
            let guarantee = Guarantee<Int> { _ in }
            var ran = false
            guarantee.done { _ in ran = true }
            try loop.run()
            expect(guarantee.isPending)
            expect(!ran)
            expect(guarantee.asPromise(), failsWith: PromiseError.abandoned)
        }
        expectEqual(lines, report(line))
    }

    @Test func aGuaranteeThatIsAbandonedDoesNotWinARace() throws {
        let lines = try loggedInLoop { _ throws in
            let winner = race(Guarantee<Int> { _ in }, after(.seconds(1)).map { 2 })
            expect(winner, gives: 2)
        }
        expectEqual(lines.count, 1)
    }

    @Test func fromAnotherThread() {
        let line: UInt = #line + 3
        let recorder = LogRecorder(where: { $0.description.contains("made at \(#fileID):\(line)") })
        let box = Shared<[Resolver<Int>]>([])
        let promise = Promise<Int> { resolver in box.change { $0 = [resolver] } }
        TestThread.run { box.change { $0 = [] } }
        recorder.stop()
        expectEqual(recorder.lines, report(line))
        expect(promise.error as? PromiseError == .abandoned)
    }
}
