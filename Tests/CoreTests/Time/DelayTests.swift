@testable import PromisesTestSupport

/// `after` and `delay`.
struct DelayTests {
    private let loop = EventLoop.current

    @Test(.inLoop) func afterADuration() throws {
        let guarantee = after(.milliseconds(1500))
        try loop.turn(.upTo(.milliseconds(1499)))
        expect(guarantee.isPending && loop.now.nanoseconds == 1_499_000_000)
        try loop.turn(.upTo(.milliseconds(1)))
        try loop.turn(.poll)
        expect(guarantee.isFulfilled && loop.now.nanoseconds == 1_500_000_000)
    }

    @Test(.inLoop) func theValueComesLater() throws {
        expectEqual(try hang(after(.seconds(1)).then { Promise.value(4) }.delay(.seconds(2))), 4)
        expectEqual(loop.now.nanoseconds, 3_000_000_000)
        expectEqual(hang(Guarantee.value(5).delay(.milliseconds(500))), 5)
        expectEqual(loop.now.nanoseconds, 3_500_000_000)
    }

    @Test(.inLoop) func aRejectionComesAtOnce() throws {
        expect(Promise<Int>(error: Flaw(1)).delay(.seconds(2)), failsWith: Flaw(1))
        expect(loop.now.nanoseconds == 0 && loop.nextDeadline == nil)
    }

    @Test(.inLoop) func zeroAndLessMeanTheNextTurn() throws {
        for pause in [Duration.zero, .seconds(-1), .nanoseconds(-1), .seconds(Int64.min / 2)] {
            let guarantee = after(pause)
            expect(guarantee.isPending)
            try loop.turn(.poll)
            expect(guarantee.isFulfilled, "\(pause)")
            let promise = Promise.value(1).delay(pause)
            expect(promise.isPending)
            expect(promise, gives: 1)
        }
        expectEqual(loop.now.nanoseconds, 0)
    }

    @Test(.inLoop) func cancelledMeanwhileTheTimerGoes() throws {
        let promise = Promise.value(1).delay(.seconds(60))
        try loop.turn(.poll)
        expect(loop.nextDeadline != nil)
        promise.cancel()
        expectEqual(loop.nextDeadline, nil)
        try loop.turn(.poll)
        expect(promise.isRejected)
    }

    @Test(.inLoop) func afterADeadline() throws {
        hang(after(deadline: LoopInstant(nanoseconds: 1_500)))
        expectEqual(loop.now.nanoseconds, 1_500)
        hang(after(deadline: LoopInstant(nanoseconds: 7)))
        expectEqual(loop.now.nanoseconds, 1_500)
        let never = after(deadline: .distantFuture)
        never.cancel()
        expectEqual(loop.nextDeadline, nil)
    }
}
