import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

@Suite struct EnsureTests {
    @Test func runsOnEveryOutcomeAndChangesNone() throws {
        try inLoop { _ throws in
            var runs = 0
            expect(Promise.value(1).ensure { runs += 1 }, gives: 1)
            expect(Promise<Int>(error: Flaw(2)).ensure { runs += 1 }, failsWith: Flaw(2))
            let cancelled = Promise<Int>(error: PromiseError.cancelled)
            expect(cancelled.ensure { runs += 1 }, failsWith: PromiseError.cancelled)
            expectEqual(runs, 3)
        }
    }

    @Test func ofAGuarantee() throws {
        try inLoop { loop throws in
            var log: [String] = []
            let fulfilled: Guarantee<Int> = Guarantee.value(1).ensure { log.append("fulfilled") }
            expect(fulfilled, gives: 1)
            let (cleanup, finish) = Guarantee<Void>.pending()
            let waiting: Guarantee<Int> = Guarantee.value(2).ensureThen {
                log.append("cleanup")
                return cleanup
            }
            try loop.run()
            expect(waiting.isPending)
            finish(())
            expect(waiting, gives: 2)
            let cancelled = after(.seconds(1)).ensure { log.append("cancelled") }
            cancelled.cancel()
            try loop.run()
            expectEqual(log, ["fulfilled", "cleanup", "cancelled"])
            expect(cancelled.asPromise().isCancelled)
        }
    }

    @Test func severalAroundACatch() throws {
        try inLoop { loop throws in
            var order: [String] = []
            Promise<Int>(error: Flaw())
                .ensure { order.append("inner") }
                .ensure { order.append("outer") }
                .catch { _ in order.append("catch") }
            try loop.run()
            expectEqual(order, ["inner", "outer", "catch"])
        }
    }
}

@Suite struct EnsureThenTests {
    @Test func theOutcomeWaitsForTheCleanup() throws {
        try inLoop { loop throws in
            for source in [Promise.value(1), Promise<Int>(error: Flaw(2))] {
                let (cleanup, finish) = Guarantee<Void>.pending()
                let promise = source.ensureThen { cleanup }
                var seen: Result<Int, any Error>?
                promise.tap { seen = $0 }.ignoringErrors()
                try loop.run()
                #expect(seen == nil)
                finish(())
                try loop.run()
                switch seen {
                case .success(let value): expectEqual(value, 1)
                case .failure(let error): expect(error as? Flaw == Flaw(2))
                case nil: Issue.record("the cleanup has ended")
                }
            }
        }
    }

    @Test func aSettledCleanup() throws {
        try inLoop { _ throws in
            expect(Promise.value(1).ensureThen { .value }, gives: 1)
            expect(Promise<Int>(error: Flaw(2)).ensureThen { Guarantee() }, failsWith: Flaw(2))
        }
    }

    @Test func aTimedCleanup() throws {
        try inLoop { loop throws in
            expect(Promise.value(1).ensureThen { after(.seconds(5)) }, gives: 1)
            expectEqual(loop.now.nanoseconds, 5_000_000_000)
        }
    }

    @Test func onCancellation() {
        inLoop { _ in
            var ran = false
            let promise = Promise<Int>(error: PromiseError.cancelled).ensureThen {
                ran = true
                return .value
            }
            expect(promise, failsWith: PromiseError.cancelled)
            expect(ran)
        }
    }

    @Test func theHeldErrorKeepsItsOrigin() throws {
        let line: UInt = #line + 4
        let lines = try logged {
            try inLoop { loop throws in
                var promise: Promise<Int>? =
                    Promise<Int>(error: Flaw(1)).ensureThen { after(.seconds(1)) }
                try loop.run()
                expect(promise != nil)
                promise = nil
            }
        }
        expectEqual(lines, ["unhandled rejection: Flaw(number: 1) (promise made at \(#fileID):\(line))"])
    }
}
