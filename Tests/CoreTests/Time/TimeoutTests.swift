@testable import PromisesTestSupport

struct TimeoutTests {
    private let loop = EventLoop.current

    @Test(.inLoop) func rejectsWhenTheTimeIsUpAndNotBefore() throws {
        let late = Promise<Int>.pending()
        let limited = late.promise.timeout(.seconds(3))
        try loop.turn(.upTo(.nanoseconds(2_999_999_999)))
        expect(limited.isPending)
        expect(limited, failsWith: PromiseError.timedOut)
        expectEqual(loop.now.nanoseconds, 3_000_000_000)
    }

    @Test(.inLoop, arguments: [true, false])
    func settlesAsTheSourceThatIsInTimeAndLeavesNoTimer(isFulfilled: Bool) throws {
        let source = after(.seconds(1)).then { isFulfilled ? .value(7) : Promise(error: Flaw(1)) }
        let limited = source.timeout(.seconds(3600))
        _ = try? hang(limited)
        expect(Promise.value(1).timeout(.seconds(3600)), gives: 1)
        expectEqual(limited.settledValue, (isFulfilled ? 7 : nil))
        expectEqual(limited.flaw, (isFulfilled ? nil : Flaw(1)))
        expectEqual(loop.nextDeadline, nil)
        expectEqual(loop.now.nanoseconds, 1_000_000_000)
    }

    @Test(.inLoop) func cancelsWhatItHasWaitedFor() throws {
        var order: [String] = []
        let work = after(.seconds(86_400)).asPromise().ensure { order.append("ensure") }
        work.timeout(.seconds(1)).catch { order.append("\($0)") }
        try loop.run()
        expectEqual(Set(order), ["ensure", "the time limit expired"])
        expect(loop.now.nanoseconds == 1_000_000_000 && loop.nextDeadline == nil)
    }

    @Test(.inLoop) func leavesAloneWhatOthersWaitFor() throws {
        let shared = after(.seconds(10)).map { 5 }
        var seen = 0
        shared.done { seen = $0 }
        let limited = shared.timeout(.seconds(1))
        expect(limited.asPromise(), failsWith: PromiseError.timedOut)
        try loop.run()
        expectEqual(seen, 5)
        expectEqual(loop.now.nanoseconds, 10_000_000_000)
    }

    @Test(.inLoop) func cancelledItselfItTakesTheTimerAlong() throws {
        let limited = after(.seconds(10)).timeout(.seconds(20))
        limited.cancel()
        try loop.turn(.poll)
        expect(limited.isRejected)
        expect(loop.nextDeadline == nil && !loop.isAlive)
    }

    /// The limit still holds while clean-ups of the cancelled work run, but the cancellation is its error.
    @Test(.inLoop) func aLimitThatExpiresAfterACancellationBeginsNothing() throws {
        var (begun, isClean) = (0, false)
        let promise = endless().ensureThen { after(.seconds(9)).done { isClean = true } }.timeout(.seconds(1)).recover {
            _ throws -> Promise<Int> in
            begun += 1
            return .value(7)
        }
        promise.cancel()
        #expect(throws: PromiseError.cancelled) { try hang(promise) }
        expect(begun == 0 && !isClean && loop.now.nanoseconds == 1_000_000_000)
        try loop.run()
        expect(isClean)
    }

    @Test(.inLoop) func zeroAndLessAreOverInTheNextTurn() throws {
        for limit in [Duration.zero, .seconds(-5)] {
            let limited = endless().timeout(limit)
            expect(limited.isPending)
            try loop.turn(.poll)
            expect(limited.isRejected)
        }
    }

    @Test(.inLoop) func byADeadlineThatStepsShare() throws {
        expect(endless().timeout(.milliseconds(500), error: Flaw(9)), failsWith: Flaw(9))
        expectEqual(loop.now.nanoseconds, 500_000_000)
        let deadline = loop.now.advanced(by: .seconds(5))
        let steps = after(.seconds(3)).timeout(deadline: deadline)
            .then { after(.seconds(3)).timeout(deadline: deadline) }
        expect(steps, failsWith: PromiseError.timedOut)
        expectEqual(loop.now.nanoseconds, 5_500_000_000)
        expect(endless().timeout(deadline: LoopInstant(nanoseconds: 0)), failsWith: PromiseError.timedOut)
        expect(endless().timeout(deadline: deadline, error: Flaw(10)), failsWith: Flaw(10))
    }

    @Test(.inLoop) func whatHasComeInTheSameMomentIsInTime() {
        // The timer of the source fires first, and its handler is queued when the limit is reached.
        expect(after(.seconds(1)).timeout(.seconds(1)).map { 3 }, gives: 3)
    }
}
