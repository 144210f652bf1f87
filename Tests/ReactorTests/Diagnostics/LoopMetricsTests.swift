/// The counters of a loop, its pending work, and how long it waits.
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
        expectEqual(metrics.turns, 1)
        expectEqual(metrics.jobs, 3)
        expectEqual(metrics.timersFired, 2)
        expectEqual(metrics.events, 1)
        expectEqual(metrics.wakeups, 0)
        watch.cancel()
        // Three registrations, two of them of the loop's own descriptors, and one removal.
        #expect(
            loop.metrics.systemCalls == [
                .epollCreate: 1, .eventCreate: 1, .timerCreate: 1, .epollControl: 4, .epollWait: 1,
            ])
    }

    @Test(.inLoop) func readingAgainAndAgainWithinATurnTouchesEpollNoMore() throws {
        let pipe = Ends.pipe()
        let watch = try loop.watch(pipe.near, for: .reading) { _ in take(from: pipe.near) }
        for _ in 0..<50 {
            put(into: pipe.far)
            try loop.turn(.wait)
        }
        expectEqual(loop.metrics.events, 50)
        expectEqual(loop.metrics.systemCalls[.epollControl], 3)
        expectEqual(loop.metrics.systemCalls[.epollWait], 50)
        watch.cancel()
    }

    @Test(.inLoop) func timePassedBetweenTurnsIsNoHandlersTime() throws {
        loop.measured = .handlers
        loop.enqueue {}
        clock.advance(by: .seconds(1))
        try loop.run()
        loop.schedule(after: .seconds(1)) { loop.enqueue {} }
        try loop.run()
        expectEqual(loop.metrics.longestHandler?.duration, .zero)
    }

    @Test(.inLoop) func everySystemCallHasTheNameOfItsManPage() {
        let names = SystemCall.allCases.map(\.description)
        expectEqual(Set(names).count, names.count)
        expectEqual(SystemCall.epollControl.description, "epoll_ctl")
        expectEqual(SystemCall.accept.description, "accept4")
        expectEqual(SystemCall.timerSet.description, "timerfd_settime")
    }

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
}
