import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

@Suite struct VirtualTimeScopeTests {
    @Test func anHourPassesAtOnce() {
        let end = withVirtualTime {
            hang(after(.seconds(3600)))
            return EventLoop.current.now
        }
        expectEqual(end, LoopInstant(nanoseconds: 3_600_000_000_000))
    }

    @Test func theTestMayMoveTheClock() throws {
        try withVirtualTime { clock throws in
            let guarantee = after(.seconds(10))
            clock.advance(by: .seconds(10))
            try EventLoop.current.turn(.poll)
            expect(guarantee.isFulfilled)
        }
    }

    @Test func theOuterLoopIsBackAfterwardsAlsoWhenTheBodyThrows() {
        let outer = EventLoop.current
        #expect(throws: Flaw.self) {
            try withVirtualTime { () throws -> Void in
                expect(EventLoop.current !== outer)
                throw Flaw()
            }
        }
        expect(EventLoop.current === outer)
    }

    @Test func whatIsLeftIsReported() {
        let lines = logged {
            withVirtualTime { Promise<Int>.pending().promise.map { $0 }.ignoringErrors() }
        }
        expect(lines.contains { $0.contains("undelivered handler") || $0.contains("abandoned") })
    }
}
