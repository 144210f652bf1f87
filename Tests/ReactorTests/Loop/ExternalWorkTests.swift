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
        for _ in 0..<500 {
            try EventLoop.withLoop { loop in
                let ran = Counter()
                let remote = loop.remote
                remote.beginExternalWork()
                let helper = TestThread {
                    remote.submit { ran.add() }
                    remote.endExternalWork()
                }
                try loop.run()
                expectEqual(ran.value, 1)
                helper.join()
            }
        }
    }

    @Test(.inRealTime) func itTakesNoVirtualTime() throws {
        let clock = VirtualClock()
        try EventLoop.withLoop(clock: clock) { loop in
            let remote = loop.remote
            let latch = Gate()
            let log = SharedList<String>()
            loop.schedule(after: .seconds(1)) { log.append("timer at \(clock.now)") }
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
    }

    @Test(.inRealTime) func meanwhileTimersFireThatAreDueAlready() throws {
        let clock = VirtualClock()
        try EventLoop.withLoop(clock: clock) { loop in
            let remote = loop.remote
            remote.beginExternalWork()
            var fired = 0
            loop.schedule(after: .zero) { fired += 1 }
            loop.schedule(after: .seconds(2)) { fired += 1 }
            clock.advance(by: .seconds(2))
            try loop.turn(.wait)
            expectEqual(fired, 2)
            remote.endExternalWork()
        }
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

    @Test(.inRealTime) func theLoopMayHaveEndedBefore() throws {
        let tally = Tally()
        let remote = EventLoop.withLoop { loop in
            loop.enqueue(tally.bound())
            loop.remote.beginExternalWork()
            return loop.remote
        }
        TestThread.run { remote.endExternalWork() }
        expectEqual(tally.alive, 0)
    }
}
