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

struct CompactMapTests {
    @Test(.inLoop) func nilRejectsAndNamesValueAndType() {
        let error = PromiseError.compactMap(value: "twelve", type: "Int")
        expect(Promise.value("twelve").compactMap { Int($0) }, failsWith: error)
        expect(Guarantee.value("twelve").compactMap { Int($0) }, failsWith: error)
        expectEqual("\(error)", "compactMap found no Int in twelve")
    }

    @Test(.inLoop) func onlyTheOuterNilCounts() {
        let nested = Promise.value(1).compactMap { _ -> Int?? in .some(nil) }
        expect(nested, gives: nil)
        let error = PromiseError.compactMap(value: "1", type: "Optional<Int>")
        expect(Promise.value(1).compactMap { _ -> Int?? in .none }, failsWith: error)
    }

    @Test(.inLoop) func aThrowAndARejectionStayWhatTheyAre() {
        var calls = 0
        let thrown = Promise.value("1").compactMap { _ throws -> Int? in throw Flaw(1) }
        expect(thrown, failsWith: Flaw(1))
        let passed = Promise<String>(error: Flaw(2)).compactMap { text -> Int? in
            calls += 1
            return Int(text)
        }
        expect(passed, failsWith: Flaw(2))
        expectEqual(calls, 0)
    }

    @Test(.inLoop) func aLargeValueIsCut() {
        let text = String(repeating: "ä", count: 201)
        let shown = String(repeating: "ä", count: 200) + "…"
        expect(
            Promise.value(text).compactMap { Int($0) },
            failsWith: PromiseError.compactMap(value: shown, type: "Int"))
    }
}

struct TapErrorTests {
    private let loop = EventLoop.current

    @Test(.inLoop) func seesTheErrorAndPassesItOn() {
        var seen: [Int] = []
        let promise = Promise<Int>(error: Flaw(1)).tapError { seen.append(($0 as! Flaw).number) }
        expect(promise, failsWith: Flaw(1))
        expect(Promise.value(2).tapError { _ in seen.append(2) }, gives: 2)
        expectEqual(seen, [1])
    }

    @Test(.inLoop) func doesNotHandleIt() throws {
        let lines = try loggedInLoop { loop throws in
            _ = Promise<Int>(error: Flaw(1)).tapError { _ in }
            try loop.run()
        }
        expectEqual(lines.count, 1)
    }

    @Test(.inLoop, arguments: [false, true]) func theCancellationOfTheChain(isFromAbove: Bool) throws {
        var seen: [String] = []
        let (source, resolver) = Promise<Int>.pending()
        let end =
            source
            .tapError { _ in seen.append("default") }
            .tapError(policy: .allErrors) { seen.append("\($0)") }
            .map { $0 }
        if isFromAbove { source.cancel() } else { end.cancel() }
        try loop.run()
        expectEqual(seen, ["\(PromiseError.cancelled)"])
        expect(end.isCancelled && source.isCancelled)
        withExtendedLifetime(resolver) {}
    }
}

struct RecoverOnlyTests {
    private func failed(_ error: any Error = Flaw(1)) -> Promise<Int> { Promise(error: error) }

    @Test(.inLoop) func byType() {
        expect(failed().recover(only: Flaw.self) { Promise.value($0.number + 10) }, gives: 11)
        expect(failed().recover(only: Flaw.self) { _ in Guarantee.value(2) }, gives: 2)
        let later = failed().recover(only: Flaw.self) { flaw in
            let number = flaw.number
            return after(.seconds(1)).map { number }
        }
        expect(later, gives: 1)
    }

    @Test(.inLoop) func byValue() {
        expect(failed().recover(only: Flaw(1)) { Promise.value(2) }, gives: 2)
        expect(failed().recover(only: Flaw(1)) { after(.seconds(1)).map { 3 } }, gives: 3)
    }

    @Test(.inLoop) func otherErrorsFlowOn() {
        var calls = 0
        func two() -> Promise<Int> {
            calls += 1
            return .value(2)
        }
        expect(failed().recover(only: Flaw(2), two), failsWith: Flaw(1))
        expect(failed(PromiseError.timedOut).recover(only: Flaw.self) { _ in two() }, failsWith: PromiseError.timedOut)
        expect(Promise.value(1).recover(only: Flaw(1), two), gives: 1)
        expect(Promise.value(1).recover(only: Flaw.self) { _ in two() }, gives: 1)
        expectEqual(calls, 0)
        expect(failed().recover(only: Flaw(2), two).recover(only: Flaw(1), two), gives: 2)
    }

    @Test(.inLoop) func aPromiseOfVoidIsWaitedFor() {
        let failed = Promise<Void>(error: Flaw(1))
        let byType = failed.recover(only: Flaw.self) { _ in Promise<Void>(error: Flaw(2)) }
        expect(byType, failsWith: Flaw(2))
        expect(failed.recover(only: Flaw(1)) { Promise<Void>(error: Flaw(3)) }, failsWith: Flaw(3))
    }
}
