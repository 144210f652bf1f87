import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

@Suite struct RaceTests {
    @Test func theFirstToSettleWins() throws {
        try inLoop { loop throws in
            let winner = race((1...3).map { number in after(.seconds(4 - number)).map { number } })
            expect(winner, gives: 3)
            expectEqual(loop.now.nanoseconds, 1_000_000_000)
            try loop.run()
        }
    }

    @Test func aRejectionWinsToo() {
        let (slow, slowResolver) = Promise<Int>.pending()
        let (failing, failer) = Promise<Int>.pending()
        let winner = race(slow, failing)
        failer.reject(Flaw(1))
        slowResolver.fulfill(2)
        expectEqual(winner.flaw, Flaw(1))
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

    @Test func guaranteesMakeAGuarantee() throws {
        try inLoop { loop throws in
            let winner: Guarantee<String> = race(after(.seconds(2)).map { "slow" }, after(.seconds(1)).map { "fast" })
            expect(winner, gives: "fast")
            try loop.run()
        }
    }

    @Test func theLosersAreCancelledAndNotReported() throws {
        let lines = try logged {
            try inLoop { loop throws in
                var ran = false
                let loser = after(.seconds(2)).map { () throws -> Int in
                    ran = true
                    throw Flaw()
                }
                expect(race(loser, after(.seconds(1)).map { 1 }.asPromise()), gives: 1)
                expect(loser.isRejected && loop.nextDeadline == nil)
                try loop.run()
                expect(!ran)
            }
        }
        expectEqual(lines, [])
    }

    @Test func settledFromSeveralThreads() throws {
        for _ in 0..<scaled(250) {
            let pairs = (0..<4).map { _ in Promise<Int>.pending() }
            let winner = race(pairs.map(\.promise))
            let calls = Shared(0)
            winner.pipe { _ in calls.change { $0 += 1 } }
            let threads = pairs.indices.map { index in TestThread { pairs[index].resolver.fulfill(index) } }
            for thread in threads { thread.join() }
            expect((0..<4).contains(try hang(winner, timeout: patience)))
            expectEqual(calls.value, 1)
        }
    }

    @Test func oneThatAHandlerReturnsEndsOnce() throws {
        try inLoop { loop throws in
            for outcomes in 0..<4 {
                let pairs = (0..<2).map { _ in Promise<Int>.pending() }
                let raced = Promise.value(()).then { race(pairs.map(\.promise)) }
                let gathered = Promise.value(()).then { when(fulfilled: pairs.map(\.promise)) }
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
                switch outcomes {
                case 3: expectEqual(gathered.settledValue, [0, 1])
                case 1: expectEqual(gathered.flaw, Flaw(1))
                default: expectEqual(gathered.flaw, Flaw(0))
                }
            }
        }
    }

    @Test(arguments: [false, true]) func oneThatAHandlerReturnedSettlesOnce(isRejected: Bool) throws {
        try inLoop { loop throws in
            let pairs = (0..<3).map { _ in Promise<Int>.pending() }
            let outer = Promise.value(()).then { race(pairs.map(\.promise)) }
            var calls: [String] = []
            outer.tap { outcome in
                if case .failure(let error) = outcome { calls.append("\(error)") } else { calls.append("fulfilled") }
            }.ignoringErrors()
            try loop.run()
            if isRejected { pairs[0].resolver.reject(Flaw(1)) } else { pairs[0].resolver.fulfill(1) }
            pairs[1].resolver.reject(Flaw(2))
            pairs[2].resolver.fulfill(3)
            try loop.run()
            expect(outer.settledValue == (isRejected ? nil : 1) && outer.flaw == (isRejected ? Flaw(1) : nil))
            expectEqual(calls, [isRejected ? "Flaw(number: 1)" : "fulfilled"])
        }
    }
}
