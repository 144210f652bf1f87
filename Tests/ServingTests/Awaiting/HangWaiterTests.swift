@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// The waiter that a `hang` leaves in a promise's list, which the thread's next `hang` reuses.
struct HangWaiterTests {
    @Test func theLoopThatKeepsOneIsReleased() {
        weak var ended: EventLoop?
        EventLoop.withLoop { loop in
            ended = loop
            for _ in 0..<3 { hang(after(.zero)) }
        }
        expect(ended == nil)
    }

    @Test(.inLoop) func oneThatStillWaitsIsNotUsedForAnotherPromise() {
        let loop = EventLoop.current
        let (first, firstResolver) = Promise<Int>.pending()
        let (second, secondResolver) = Promise<Int>.pending()
        // A handler in its list keeps the place of the withdrawn waiter.
        first.done { _ in }.orFail()
        for limit in 1...3 {
            #expect(throws: PromiseError.timedOut) { try hang(first, timeout: .seconds(limit)) }
        }
        after(.seconds(1)).done { firstResolver.fulfill(1) }
        after(.seconds(2)).done { secondResolver.fulfill(2) }
        expect(second, gives: 2)
        expectEqual(loop.now.nanoseconds, 8_000_000_000)
        expect(first, gives: 1)
    }

    @Test(.inLoop) func oneThatComesAfterItsHangHasEndedIsNotUsedMeanwhile() throws {
        let loop = EventLoop.current
        let (first, firstResolver) = Promise<Int>.pending()
        let (second, secondResolver) = Promise<Int>.pending()
        loop.schedule(after: .seconds(1)) {
            // The last job of a turn: the waiter is notified in the next one, long after the promise was checked.
            for _ in 0..<1023 { loop.enqueue {} }
            loop.enqueue { firstResolver.fulfill(1) }
        }
        expectEqual(try hang(first), 1)
        expect(loop.isReady)
        loop.schedule(after: .seconds(1)) { secondResolver.fulfill(2) }
        expectEqual(try hang(second), 2)
        expectEqual(loop.now.nanoseconds, 2_000_000_000)
    }

    @Test(.inLoop) func aHandlerBehindAHangRunsAsEver() throws {
        let loop = EventLoop.current
        let (promise, resolver) = Promise<Int>.pending()
        var order: [String] = []
        after(.seconds(1)).done {
            promise.done { _ in order.append("attached before") }.orFail()
            resolver.fulfill(1)
            promise.done { _ in order.append("attached after") }.orFail()
        }
        expectEqual(try hang(promise), 1)
        order.append("hang")
        try loop.run()
        expectEqual(order, ["attached before", "attached after", "hang"])
    }

    @Test func aRejectionFromAnotherThreadIsThrownAndNotReported() {
        let lines = logged {
            EventLoop.withLoop { loop in
                let hold = loop.hold()
                let (promise, resolver) = Promise<Int>.pending()
                let thread = TestThread {
                    for _ in 0..<100 { sched_yield() }
                    resolver.reject(Flaw(1))
                }
                expect(promise, failsWith: Flaw(1))
                thread.join()
                hold.cancel()
            }
        }
        expectEqual(lines, [])
    }
}
