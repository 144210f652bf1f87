@testable import Reactor

/// Jobs that run when no other job of their turn is ready.
struct EndOfTurnTests {
    private let loop = EventLoop.current

    @Test(.inRealTime) func theyRunAfterAllReadyJobsAndThoseThatTheseAdd() throws {
        var order: [Int] = []
        loop.enqueue {
            loop.enqueueAtEndOfTurn(ClosureJob { order.append(4) })
            loop.enqueue {
                order.append(1)
                loop.enqueue { order.append(3) }
            }
        }
        loop.enqueue { order.append(0) }
        loop.enqueue { loop.enqueue { order.append(2) } }
        try loop.turn(.poll)
        expectEqual(order, [0, 1, 2, 3, 4])
    }

    @Test(.inRealTime) func theyRunBeforeATurnInsideAHandlerWaits() throws {
        var hasRun = false
        loop.enqueue {
            loop.enqueueAtEndOfTurn(ClosureJob { hasRun = true })
            try! loop.turn(.poll)
            expect(hasRun)
        }
        try loop.turn(.poll)
    }

    /// Jobs that enqueue others delay them, but not forever.
    @Test(.inLoop) func aChainWithoutEndPutsThemOffForSomeBatches() throws {
        var jobs = 0
        var seen: Int?
        func next() {
            jobs += 1
            if jobs == 1 { loop.enqueueAtEndOfTurn(ClosureJob { seen = jobs }) }
            if jobs < 100_000 { loop.enqueue(next) }
        }
        loop.enqueue(next)
        try loop.run(until: { seen != nil })
        expect(seen! > 1024 && seen! <= 10 * 1024)
        expect(jobs < 100_000)
    }
}
