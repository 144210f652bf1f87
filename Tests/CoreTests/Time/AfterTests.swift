@testable import PromisesTestSupport

struct AfterTests {
    private let loop = EventLoop.current

    @Test(.inLoop) func isFulfilledAtItsMoment() throws {
        let loop = EventLoop.current
        let guarantee = after(.milliseconds(1500))
        try loop.turn(.upTo(.milliseconds(1499)))
        expectEqual(loop.now.nanoseconds, 1_499_000_000)
        expect(guarantee.isPending)
        try loop.turn(.upTo(.milliseconds(1)))
        try loop.turn(.poll)
        expect(guarantee.isFulfilled)
        expectEqual(loop.now.nanoseconds, 1_500_000_000)
    }

    @Test(.inLoop) func zeroAndLessMeanTheNextTurn() throws {
        for delay in [Duration.zero, .seconds(-1), .nanoseconds(-1), .seconds(Int64.min / 2)] {
            let guarantee = after(delay)
            expect(guarantee.isPending)
            try loop.turn(.poll)
            expect(guarantee.isFulfilled, "\(delay)")
        }
        expectEqual(loop.now.nanoseconds, 0)
    }
}
