@testable import PromisesTestSupport

struct DelayTests {
    private let loop = EventLoop.current

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

    @Test(.inLoop) func noneIsTheNextTurn() throws {
        let promise = Promise.value(1).delay(.seconds(-1))
        expect(promise.isPending)
        expectEqual(try hang(promise), 1)
        expectEqual(loop.now.nanoseconds, 0)
    }

    @Test(.inLoop) func cancelledMeanwhileTheTimerGoes() throws {
        let promise = Promise.value(1).delay(.seconds(60))
        try loop.turn(.poll)
        expect(loop.nextDeadline != nil)
        promise.cancel()
        expectEqual(loop.nextDeadline, nil)
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
