/// What a loop has done, and the times that it measures.
struct LoopMetricsTests {
    private let loop = EventLoop.current
    private var clock: VirtualClock { loop.virtualClock }

    @Test(.inLoop) func itCountsTurnsJobsTimersEventsAndSystemCallsByName() throws {
        expectEqual(loop.metrics.turns, 0)
        let pipe = Ends.pipe()
        let watch = try loop.watch(pipe.near, for: .reading) { _ in take(from: pipe.near) }
        for _ in 0..<3 { loop.enqueue {} }
        for _ in 0..<2 { loop.schedule(after: .zero) {} }
        put(into: pipe.far)
        try loop.turn(.poll)
        let metrics = loop.metrics
        expectEqual([metrics.turns, metrics.jobs, metrics.timersFired, metrics.wakeups], [1, 3, 2, 0])
        for _ in 0..<50 {
            put(into: pipe.far)
            try loop.turn(.wait)
        }
        watch.cancel()
        expectEqual(loop.metrics.events, 51)
        // Three registrations, two of them of the loop's own descriptors, and one removal: reading again needs none.
        #expect(
            loop.metrics.systemCalls == [
                .epollCreate: 1, .eventCreate: 1, .timerCreate: 1, .epollControl: 4, .epollWait: 51,
            ])
    }

    @Test(.inLoop) func timesAreMeasuredOnlyWhenAskedForAndThatBetweenTurnsIsNoHandlers() throws {
        loop.schedule(after: .seconds(5)) {}
        try loop.run()
        expectEqual(loop.metrics.timeWaiting, nil)
        loop.measured = .handlers
        loop.enqueue {}
        clock.advance(by: .seconds(1))
        try loop.run()
        loop.schedule(after: .seconds(1)) { loop.enqueue {} }
        try loop.run()
        expectEqual(loop.metrics.longestHandler?.duration, .zero)
        loop.schedule(after: .seconds(3)) { clock.advance(by: .seconds(7)) }
        try loop.run()
        expectEqual(loop.metrics.timeWaiting, .seconds(1 + 3))
        expectEqual(loop.metrics.longestHandler?.duration, .seconds(7))
    }

    @Test(.inLoop) func theLongestTurnIsFromTheEndOfAWaitToTheEndOfTheTurn() throws {
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
