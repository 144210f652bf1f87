@testable import PromisesTestSupport

struct MapTests {
    @Test(.inLoop) func asVoid() throws {
        try hang(Promise.value(3).asVoid())
        hang(Guarantee.value(3).asVoid())
        expect(Promise<Int>(error: Flaw(1)).asVoid(), failsWith: Flaw(1))
        let list: [Promise<Void>] = [Promise.value(1).asVoid(), Promise.value("a").asVoid()]
        try hang(when(fulfilled: list))
    }
}

struct FirstlyTests {
    @Test(.inLoop) func runsAtOnce() throws {
        var ran = false
        firstly { () -> Promise<Void> in
            ran = true
            return .value
        }.ignoringErrors()
        expect(ran)
    }

    @Test(.inLoop) func aGuaranteeStaysOne() {
        let guarantee: Guarantee<Int> = firstly { Guarantee.value(1) }
        expect(guarantee, gives: 1)
        let chain: Guarantee<Int> = firstly { after(.seconds(1)) }.map { 2 }
        expect(chain, gives: 2)
    }
}

struct EnsureTests {
    @Test(.inLoop) func ofAGuarantee() throws {
        let loop = EventLoop.current
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

struct EnsureThenTests {
    @Test func theHeldErrorKeepsItsOrigin() throws {
        let line: UInt = #line + 3
        let lines = try loggedInLoop { loop throws in
            var promise: Promise<Int>? =
                Promise<Int>(error: Flaw(1)).ensureThen { after(.seconds(1)) }
            try loop.run()
            expect(promise != nil)
            promise = nil
        }
        expectEqual(lines, ["unhandled rejection: Flaw(number: 1) (promise made at \(#fileID):\(line))"])
    }
}

struct RecoverTests {
    @Test(.inLoop) func toAGuaranteeHandlesEverything() throws {
        let errors: [any Error] = [Flaw(), PromiseError.cancelled, CancellationError()]
        for error in errors {
            let safe: Guarantee<Int> = Promise<Int>(error: error).recover { _ in .value(5) }
            expect(safe, gives: 5)
        }
        let untouched: Guarantee<Int> = Promise.value(1).recover { _ in .value(5) }
        expect(untouched, gives: 1)
    }

    @Test(.inLoop) func ofVoid() throws {
        var seen: [Int] = []
        let failed = Promise<Void>(error: Flaw(1))
        let safe: Guarantee<Void> = failed.recover { seen.append(($0 as! Flaw).number) }
        hang(safe)
        let throwing = failed.recover { error throws in
            seen.append(2)
            throw error
        }
        expect(throwing, failsWith: Flaw(1))
        let cancelled = Promise<Void>(error: PromiseError.cancelled)
        let skipped: Promise<Void> = cancelled.recover(policy: .allErrorsExceptCancellation) { _ in seen.append(3) }
        expect(skipped, failsWith: PromiseError.cancelled)
        expectEqual(seen, [1, 2])
    }
}
