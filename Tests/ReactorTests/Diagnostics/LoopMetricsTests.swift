import Reactor
import Testing

/// What a loop counts.
@Suite struct LoopMetricsTests {
    private let clock = VirtualClock()

    @Test func itCountsTurnsJobsTimersAndEvents() throws {
        try EventLoop.withLoop(clock: clock) { loop in
            #expect(loop.metrics.turns == 0)
            let pipe = Ends.pipe()
            let watch = try loop.watch(pipe.near, for: .reading) { _ in take(from: pipe.near) }
            for _ in 0..<3 { loop.enqueue {} }
            for _ in 0..<2 { loop.schedule(after: .zero) {} }
            put(into: pipe.far)
            try loop.turn(.poll)
            let metrics = loop.metrics
            #expect(metrics.turns == 1)
            #expect(metrics.jobs == 3)
            #expect(metrics.timersFired == 2)
            #expect(metrics.events == 1)
            #expect(metrics.wakeups == 0)
            watch.cancel()
        }
    }

    @Test func itCountsSystemCallsByNameAndLeavesOutThoseNeverMade() throws {
        try EventLoop.withLoop(clock: clock) { loop in
            let pipe = Ends.pipe()
            let watch = try loop.watch(pipe.near, for: .reading) { _ in }
            try loop.turn(.poll)
            watch.cancel()
            #expect(loop.metrics.systemCalls == [.epollCreate: 1, .epollControl: 2, .epollWait: 1])
        }
    }

    @Test func readingAgainAndAgainWithinATurnTouchesEpollNoMore() throws {
        try EventLoop.withLoop(clock: clock) { loop in
            let pipe = Ends.pipe()
            let watch = try loop.watch(pipe.near, for: .reading) { _ in take(from: pipe.near) }
            for _ in 0..<50 {
                put(into: pipe.far)
                try loop.turn(.wait)
            }
            #expect(loop.metrics.events == 50)
            #expect(loop.metrics.systemCalls[.epollControl] == 1)
            #expect(loop.metrics.systemCalls[.epollWait] == 50)
            watch.cancel()
        }
    }

    @Test func theLongestHandlerIsMeasuredOnlyWhenAskedFor() throws {
        try EventLoop.withLoop(clock: clock) { loop in
            loop.enqueue { clock.advance(by: .seconds(9)) }
            try loop.run()
            #expect(loop.metrics.longestHandler == nil)

            loop.measured = .handlers
            for milliseconds in [1, 5, 3] { loop.enqueue { clock.advance(by: .milliseconds(milliseconds)) } }
            try loop.run()
            #expect(loop.metrics.longestHandler?.duration == .milliseconds(5))

            loop.measured = .nothing
            loop.enqueue { clock.advance(by: .seconds(9)) }
            try loop.run()
            loop.measured = .handlers
            #expect(loop.metrics.longestHandler?.duration == .milliseconds(5))
        }
    }

    @Test func timePassedBetweenTurnsIsNoHandlersTime() throws {
        try EventLoop.withLoop(clock: clock) { loop in
            loop.measured = .handlers
            loop.enqueue {}
            clock.advance(by: .seconds(1))
            try loop.run()
            loop.schedule(after: .seconds(1)) { loop.enqueue {} }
            try loop.run()
            #expect(loop.metrics.longestHandler?.duration == .zero)
        }
    }

    @Test func everySystemCallHasTheNameOfItsManPage() {
        let names = SystemCall.allCases.map(\.description)
        #expect(Set(names).count == names.count)
        #expect(SystemCall.epollControl.description == "epoll_ctl")
        #expect(SystemCall.accept.description == "accept4")
        #expect(SystemCall.timerSet.description == "timerfd_settime")
    }
}
