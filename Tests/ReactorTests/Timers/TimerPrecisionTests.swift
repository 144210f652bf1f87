/// When timers fire by the real clock, and the cost.
struct TimerPrecisionTests {
    private let loop = EventLoop.current

    @Test(.inRealTime, arguments: [100, 1000, 1500]) func aTimerIsNeverEarlyAndNeedsNoMoreThanThreeTurns(
        microseconds: Int
    ) throws {
        let rounds = 200
        var fires = 0
        var early = 0
        func again() {
            let deadline = loop.now.advanced(by: .microseconds(microseconds))
            loop.schedule(at: deadline) {
                fires += 1
                if loop.now < deadline { early += 1 }
                if fires < rounds { again() }
            }
        }
        again()
        try loop.run()
        expectEqual(fires, rounds)
        expectEqual(early, 0)
        expect(loop.metrics.turns <= 3 * rounds)
        expect(loop.metrics.systemCalls[.epollWait]! <= 3 * rounds)
    }

    private var timesArmed: Int { loop.metrics.systemCalls[.timerSet] ?? 0 }

    @Test(.inRealTime) func deadlinesBeyondAllTimeNeverFireAndNeverTroubleTheKernel() throws {
        var fires = 0
        let timers = [
            loop.schedule(at: .distantFuture) { fires += 1 },
            loop.schedule(after: .seconds(Int64.max)) { fires += 1 },
            loop.schedule(after: .nanoseconds(Int64.max)) { fires += 1 },
            loop.schedule(every: .seconds(Int64.max)) { fires += 1 },
        ]
        let pipe = Ends.pipe()
        try loop.watch(pipe.near, for: .reading) { _ in }.unref()
        try loop.turn(.poll)
        expectEqual(timesArmed, 0)

        // One nanosecond less is the farthest moment for which the timerfd is armed.
        loop.schedule(at: LoopInstant(nanoseconds: .max - 1)) { fires += 1 }
        try loop.turn(.poll)
        try loop.turn(.upTo(.milliseconds(1)))
        expectEqual(timesArmed, 2)
        expectEqual(fires, 0)
        expectEqual(timers.map(\.isActive), [true, true, true, true])
    }

    @Test(.inRealTime) func onlyAnEarlierDeadlineArmsTheTimerDescriptorAnew() throws {
        let pipe = Ends.pipe()
        let watch = try loop.watch(pipe.near, for: .reading) { _ in }
        let hour = loop.schedule(after: .seconds(3600)) {}
        try loop.turn(.poll)
        expectEqual(timesArmed, 1)
        loop.schedule(after: .seconds(7200)) {}
        try loop.turn(.poll)
        hour.reschedule(at: loop.now.advanced(by: .seconds(9000)))
        try loop.turn(.poll)
        expectEqual(timesArmed, 1, "later deadlines leave it as it is")
        loop.schedule(after: .seconds(60)) {}
        try loop.turn(.poll)
        expectEqual(timesArmed, 2)
        watch.cancel()
    }

    @Test(.inRealTime) func aCancelledTimerMayWakeTheLoopOnceAndNoMore() throws {
        let pipe = Ends.pipe()
        try loop.watch(pipe.near, for: .reading) { _ in }.unref()
        let cancelled = loop.schedule(after: .milliseconds(1)) {}
        try loop.turn(.poll)
        expectEqual(timesArmed, 1)
        cancelled.cancel()
        var fired = false
        loop.schedule(after: .milliseconds(5)) { fired = true }
        let before = loop.metrics.turns
        try loop.run()
        expect(fired)
        expect(loop.metrics.turns - before <= 3)
        expect(timesArmed <= 2)
    }

    @Test(.inRealTime) func aBoundedWaitEndsAtItsBound() throws {
        let start = loop.now
        try loop.turn(.upTo(.milliseconds(3)))
        expect(start.duration(to: loop.now) >= .milliseconds(3))
        try loop.turn(.upTo(.zero))
        try loop.turn(.upTo(.seconds(-1)))
        expectEqual(loop.metrics.turns, 3)
    }
}
