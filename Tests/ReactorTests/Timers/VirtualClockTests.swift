/// A loop whose time stands still while there is anything to do.
struct VirtualClockTests {
    private let loop = EventLoop.current
    private var clock: VirtualClock { loop.virtualClock }

    @Test(.inLoop) func dataThatHasArrivedIsHandledBeforeTimeJumps() throws {
        let pipe = Ends.pipe()
        var log: [String] = []
        var watch: EventLoop.Watch?
        watch = try loop.watch(pipe.near, for: .reading) { _ in
            log.append("data at \(loop.now)")
            take(from: pipe.near)
            watch?.cancel()
        }
        loop.schedule(after: .seconds(1)) { log.append("timer at \(loop.now)") }
        put(into: pipe.far)
        try loop.run()
        expectEqual(log, ["data at 0.0 s", "timer at 1.0 s"])
    }

    @Test(.inLoop, arguments: [Int64.max, Int64.max - 1, Int64.max - 5])
    func atTheEndOfTimeTimersAreDueStill(start: Int64) throws {
        let real = Syscalls()
        var calls = real
        calls.epollWait = { epoll, events, count, timeout in
            if timeout < 0 { Issue.record("it waits forever") }
            return real.epollWait(epoll, events, count, 0)
        }
        try EventLoop.withLoop(clock: clock, syscalls: calls) { loop in
            clock.advance(to: LoopInstant(nanoseconds: start))
            expect(loop.now < .distantFuture)
            var fires = 0
            loop.schedule(after: .seconds(1)) { fires += 1 }
            loop.schedule(every: .seconds(1)) { fires += 1 }.unref()
            loop.schedule(at: .distantFuture) { Issue.record("never") }.unref()
            for _ in 0..<10 where fires < 2 { try loop.turn(.wait) }
            expectEqual(fires, 2)
            try loop.turn(.upTo(.seconds(1)))
            expect(VirtualClock(start: .distantFuture).now < .distantFuture)
        }
    }

    @Test(.inLoop) func onlyATurnThatWaitsMovesTimeAndToItsBoundAtMost() throws {
        loop.schedule(after: .seconds(2)) {}
        loop.enqueue {}
        for (wait, seconds) in [
            (EventLoop.Wait.poll, 0), (.upTo(.seconds(-5)), 0), (.upTo(.seconds(5)), 2), (.upTo(.seconds(5)), 7),
        ] {
            try loop.turn(wait)
            expectEqual(clock.now, LoopInstant(nanoseconds: 0) + .seconds(seconds), "\(wait)")
        }
        loop.schedule(after: .seconds(1)) {}
        loop.enqueue {}
        for seconds in [7, 8] {
            try loop.turn(.wait)
            expectEqual(clock.now, LoopInstant(nanoseconds: 0) + .seconds(seconds), "the job came first")
        }
        clock.advance(by: .seconds(-1))
        clock.advance(to: LoopInstant(nanoseconds: 1))
        expectEqual(clock.now, LoopInstant(nanoseconds: 0) + .seconds(8), "it never goes back")
    }

    @Test(.inLoop) func aClockMayStartAnywhere() throws {
        let clock = VirtualClock(start: LoopInstant(nanoseconds: -500))
        try EventLoop.withLoop(clock: clock) { loop in
            var fired: [Int64] = []
            loop.schedule(at: LoopInstant(nanoseconds: -100)) { fired.append(loop.now.nanoseconds) }
            loop.schedule(after: .nanoseconds(700)) { fired.append(loop.now.nanoseconds) }
            try loop.run()
            expectEqual(fired, [-100, 200])
        }
    }
}

/// A step of the system clock moves no timer. Stepping needs privileges, so the test shows that no steppable clock is
/// read.
struct SteppedClockTests {
    @Test func theKernelsTimerCountsOnTheMonotonicClock() throws {
        let fd = CInt(try Syscalls().timerCreate().orThrow(.timerCreate))
        defer { close(fd) }
        let info = text(ofFile: "/proc/self/fdinfo/\(fd)")
        expect(info.contains("\nclockid: \(CLOCK_MONOTONIC)\n"), info)
    }
}
