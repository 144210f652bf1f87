/// Work of other threads that a loop counts.
struct ExternalWorkTests {
    private let loop = EventLoop.current

    @Test(.inRealTime) func itKeepsTheLoopAlive() {
        let remote = loop.remote
        remote.beginExternalWork()
        remote.beginExternalWork()
        remote.endExternalWork()
        expect(loop.isAlive && loop.canWakeItself && !loop.isReady)
        remote.endExternalWork()
        expect(!loop.isAlive && !loop.canWakeItself)
    }

    /// Jobs posted before the end are run by the same `run()`.
    @Test(.inRealTime) func whatItPostsIsNotMissed() throws {
        let (remote, ran) = (loop.remote, Counter())
        for round in 1...500 {
            remote.beginExternalWork()
            let helper = TestThread {
                remote.submit { ran.add() }
                remote.endExternalWork()
            }
            try loop.run()
            expectEqual(ran.value, round)
            helper.join()
        }
    }

    @Test(.inLoop) func itTakesNoVirtualTime() throws {
        let remote = loop.remote
        let latch = Gate()
        let log = SharedList<String>()
        loop.schedule(after: .seconds(1)) { log.append("timer at \(loop.now)") }
        remote.beginExternalWork()
        let helper = TestThread {
            latch.wait()
            remote.submit { log.append("work") }
            remote.endExternalWork()
        }
        try loop.turn(.poll)
        loop.enqueue { latch.open() }
        try loop.run()
        helper.join()
        expectEqual(log.value, ["work", "timer at 1.0 s"])
    }

    @Test(.inLoop) func meanwhileTimersFireThatAreDueAlready() throws {
        loop.remote.beginExternalWork()
        var fired = 0
        loop.schedule(after: .zero) { fired += 1 }
        loop.schedule(after: .seconds(2)) { fired += 1 }
        loop.virtualClock.advance(by: .seconds(2))
        try loop.turn(.wait)
        expectEqual(fired, 2)
        loop.remote.endExternalWork()
    }

    /// A thread that never drives its loop may still hand out work.
    @Test(.inRealTime) func whatSaysSoDoesNotPileUp() throws {
        let remote = loop.remote
        for _ in 0..<100 {
            remote.beginExternalWork()
            TestThread.run { remote.endExternalWork() }
        }
        expect(loop.isReady)
        try loop.turn(.poll)
        expect(loop.metrics.jobs == 1 && !loop.isAlive)
    }

    @Test func afterTheEndOfTheLoopItKeepsNothing() {
        weak var ended: EventLoop?
        do {
            let remote = EventLoop.withLoop { loop in
                ended = loop
                loop.remote.beginExternalWork()
                return loop.remote
            }
            TestThread.run { remote.endExternalWork() }
        }
        expect(ended == nil)
    }
}
