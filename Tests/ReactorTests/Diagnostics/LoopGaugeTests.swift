/// The pending work of a loop, and how long it waits.
struct LoopGaugeTests {
    private let loop = EventLoop.current

    @Test(.inLoop) func theyCountWhatIsThere() throws {
        let pipe = Ends.pipe()
        let watch = try loop.watch(pipe.near, for: .reading) { _ in }
        let timer = loop.schedule(after: .seconds(1)) {}
        loop.schedule(after: .seconds(2)) {}.unref()
        let signal = try loop.onSignal(SIGUSR2) {}
        let hold = loop.hold()
        loop.remote.beginExternalWork()
        for _ in 0..<3 { loop.enqueue {} }
        let remote = loop.remote
        _ = TestThread.run { remote.submit {} }

        let metrics = loop.metrics
        expectEqual(metrics.readyJobs, 4)
        expectEqual(metrics.descriptors, 1)
        expectEqual(metrics.timers, 2)
        expectEqual(metrics.signalWatches, 1)
        expectEqual(metrics.holds, 1)
        expectEqual(metrics.externalWork, 1)
        expectEqual(metrics.waitingHandlers, 0)

        loop.remote.endExternalWork()
        hold.cancel()
        signal.cancel()
        timer.cancel()
        watch.cancel()
        try loop.turn(.poll)
        let after = loop.metrics
        expectEqual(after.jobs, 4)
        expectEqual(after.readyJobs + after.descriptors + after.signalWatches + after.holds + after.externalWork, 0)
        expectEqual(after.timers, 1)
    }

    @Test(.inRealTime) func aHoldIsCountedOnceUntilItIsReleasedOrGone() {
        let first = loop.hold()
        var second: EventLoop.Hold? = loop.hold()
        expectEqual(loop.metrics.holds, 2)
        second = nil
        expectEqual(loop.metrics.holds, 1)
        first.cancel()
        first.cancel()
        expectEqual(loop.metrics.holds, 0)
        #expect(second == nil)
    }

    @Test(.inLoop) func theTimeOfWaitingIsMeasuredOnlyWhenAskedFor() throws {
        let clock = VirtualClock()
        try EventLoop.withLoop(clock: clock) { loop in
            loop.schedule(after: .seconds(5)) {}
            try loop.run()
            expectEqual(loop.metrics.timeWaiting, nil)

            loop.measured = .handlers
            loop.schedule(after: .seconds(3)) { clock.advance(by: .seconds(7)) }
            try loop.run()
            expectEqual(loop.metrics.timeWaiting, .seconds(3))
            expectEqual(loop.metrics.longestHandler?.duration, .seconds(7))
        }
    }

    @Test(.inLoop) func theLongestTurnIsFromTheEndOfAWaitToTheEndOfTheTurn() throws {
        let clock = VirtualClock()
        try EventLoop.withLoop(clock: clock) { loop in
            loop.measured = .turns
            loop.schedule(after: .seconds(3)) {
                clock.advance(by: .seconds(2))
                loop.enqueue { clock.advance(by: .seconds(4)) }
            }
            loop.schedule(after: .seconds(60)) { clock.advance(by: .seconds(1)) }
            try loop.run()
            expectEqual(loop.metrics.longestTurn, .seconds(6))
            // Jobs that were ready before the turn looked count too.
            loop.enqueue { clock.advance(by: .seconds(8)) }
            try loop.turn(.poll)
            expectEqual(loop.metrics.longestTurn, .seconds(8))
            expectEqual(loop.metrics.timeWaiting, .seconds(3 + 51))
            expectEqual(loop.metrics.longestHandler, nil)
        }
    }

    @Test(.inRealTime) func aRealWaitIsMeasuredToo() throws {
        loop.measured = .handlers
        loop.schedule(after: .milliseconds(5)) {}
        try loop.run()
        let time = try #require(loop.metrics.timeWaiting)
        expect(time >= .milliseconds(4))
        expect(time < .seconds(5))
    }

    @Test(.inRealTime) func aPollIsNoWait() throws {
        loop.measured = .handlers
        let hold = loop.hold()
        for _ in 0..<5 { try loop.turn(.poll) }
        expectEqual(loop.metrics.timeWaiting, .zero)
        hold.cancel()
    }

    @Test(.inLoop) func aPoolTellsItsLimitsToo() throws {
        let pool = try ThreadPool(name: "gauge", threads: 2, queueLimit: 7)
        expectEqual(pool.metrics.threadLimit, 2)
        expectEqual(pool.metrics.queueLimit, 7)
        let started = Counter()
        let gate = Counter()
        for _ in 0..<5 {
            try pool.dispatch {
                started.add()
                spin { gate.value > 0 }
            }
        }
        spin { started.value == 2 }
        let metrics = pool.metrics
        expectEqual(metrics.threads, 2)
        expectEqual(metrics.busy, 2)
        expectEqual(metrics.queued, 3)
        gate.add()
        pool.shutDown()
        expectEqual(pool.metrics.completed, 5)
    }
}
