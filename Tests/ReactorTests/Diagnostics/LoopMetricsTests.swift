/// The counters of a loop.
struct LoopMetricsTests {
    private let loop = EventLoop.current
    private var clock: VirtualClock { loop.virtualClock }

    @Test(.inLoop) func itCountsTurnsJobsTimersAndEvents() throws {
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
    }

    @Test(.inLoop) func itCountsSystemCallsByNameAndLeavesOutThoseNeverMade() throws {
        let pipe = Ends.pipe()
        let watch = try loop.watch(pipe.near, for: .reading) { _ in }
        try loop.turn(.poll)
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
        #expect(loop.metrics.events == 50)
        #expect(loop.metrics.systemCalls[.epollControl] == 3)
        #expect(loop.metrics.systemCalls[.epollWait] == 50)
        watch.cancel()
    }

    @Test(.inLoop) func theLongestHandlerIsMeasuredOnlyWhenAskedFor() throws {
        loop.enqueue { clock.advance(by: .seconds(9)) }
        try loop.run()
        expectEqual(loop.metrics.longestHandler, nil)

        loop.measured = .handlers
        for milliseconds in [1, 5, 3] { loop.enqueue { clock.advance(by: .milliseconds(milliseconds)) } }
        try loop.run()
        expectEqual(loop.metrics.longestHandler?.duration, .milliseconds(5))

        loop.measured = .nothing
        loop.enqueue { clock.advance(by: .seconds(9)) }
        try loop.run()
        loop.measured = .handlers
        expectEqual(loop.metrics.longestHandler?.duration, .milliseconds(5))
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
}
