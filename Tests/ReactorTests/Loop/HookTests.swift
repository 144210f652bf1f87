/// Hooks before and after a wait.
struct HookTests {
    private let loop = EventLoop.current

    @Test(.inLoop, arguments: [true, false]) func theyStandAroundEachWaitInTheOrderOfAdding(isVirtual: Bool) throws {
        try EventLoop.withLoop(clock: isVirtual ? VirtualClock() : nil) { loop in
            var log: [String] = []
            loop.beforeWaiting { log.append("before 1") }
            loop.afterWaiting { log.append("after 1") }
            loop.beforeWaiting { log.append("before 2") }
            loop.afterWaiting { log.append("after 2") }
            loop.enqueue { log.append("job") }
            loop.schedule(after: .milliseconds(2)) { log.append("timer") }
            try loop.run { log.last == "timer" }
            expectEqual(log, ["job", "before 1", "before 2", "after 1", "after 2", "timer"])
        }
    }

    @Test(.inRealTime) func aTurnThatDoesNotWaitCallsNone() throws {
        loop.beforeWaiting { Issue.record("before") }
        loop.afterWaiting { Issue.record("after") }
        try loop.turn(.poll)
        loop.enqueue {}
        try loop.turn(.wait)
        loop.schedule(after: .zero) {}
        try loop.turn(.wait)
        try loop.turn(.upTo(.zero))
        try loop.run()
    }

    @Test(.inRealTime) func whatAHookMakesReadyIsNotWaitedAfter() throws {
        let far = loop.schedule(after: .seconds(1000)) {}
        var runs = 0
        let hook = loop.beforeWaiting { loop.enqueue { runs += 1 } }
        loop.afterWaiting { Issue.record("it has waited") }
        for _ in 0..<3 { try loop.turn(.wait) }
        expectEqual(runs, 3)
        hook.cancel()
        far.cancel()
    }

    @Test(.inRealTime) func aHookThatTakesTheLastReasonAwayEndsTheRun() throws {
        let timer = loop.schedule(after: .seconds(1000)) {}
        let pipe = Ends.pipe()
        let watch = try loop.watch(pipe.near, for: .reading) { _ in }
        loop.beforeWaiting {
            timer.unref()
            watch.unref()
        }
        try loop.run()
        expect(timer.isActive)
    }

    @Test(.inLoop) func aHookMayCancelItselfAndOthers() throws {
        var log: [String] = []
        var second: EventLoop.Watch?
        var first: EventLoop.Watch?
        let tally = Tally()
        first = loop.beforeWaiting(
            tally.bound {
                log.append("first")
                first?.cancel()
                second?.cancel()
            })
        second = loop.beforeWaiting(tally.bound { log.append("second") })
        loop.beforeWaiting { log.append("third") }
        for _ in 0..<2 {
            loop.schedule(after: .seconds(1)) {}
            try loop.run()
        }
        expectEqual(log, ["first", "third", "third"])
        expectEqual(tally.alive, 0)
        first?.cancel()
    }

    @Test(.inLoop) func aHookMayTurnTheLoopAndIsNotCalledInThere() throws {
        var calls = 0
        var fired = 0
        loop.beforeWaiting {
            calls += 1
            var inner = false
            loop.schedule(after: .seconds(1)) { inner = true }
            _ = try! loop.run { inner }
        }
        loop.schedule(after: .seconds(5)) { fired += 1 }
        try loop.run { fired == 1 }
        expectEqual(fired, 1)
        expectEqual(loop.now.nanoseconds, 5_000_000_000)
        // Each has turned the loop for a second, after which the loop checks again before it waits.
        expectEqual(calls, 5)
    }

    @Test(.inLoop, arguments: [true, false]) func whatATurnOfAHookHasDoneIsNotWaitedAfter(isVirtual: Bool) throws {
        try EventLoop.withLoop(clock: isVirtual ? VirtualClock() : nil) { loop in
            var isDone = false
            var isLate = false
            loop.schedule(after: .milliseconds(1)) { isDone = true }
            loop.schedule(after: .seconds(60)) { isLate = true }.unref()
            let hook = loop.beforeWaiting { _ = try! loop.run { isDone } }
            let hold = loop.hold()
            expect(try loop.run { isDone || isLate })
            expect(isDone && !isLate && loop.now < LoopInstant(nanoseconds: isVirtual ? 60_000_000_000 : .max))
            hook.cancel()
            hold.cancel()
        }
    }

    @Test(.inLoop) func workThatAHookGivesOutTakesNoVirtualTime() throws {
        let clock = VirtualClock()
        let latch = Gate()
        let real = Syscalls()
        var calls = real
        // The work finishes when the loop really waits for it, or else after the clock has jumped.
        calls.epollWait = { epoll, events, count, timeout in
            if timeout < 0 { latch.open() }
            return real.epollWait(epoll, events, count, timeout)
        }
        try EventLoop.withLoop(clock: clock, syscalls: calls) { loop in
            let remote = loop.remote
            let log = SharedList<String>()
            var helper: TestThread?
            loop.schedule(after: .seconds(1)) {
                log.append("timer at \(loop.now)")
                latch.open()
            }
            loop.afterWaiting { log.append("after") }
            loop.beforeWaiting {
                log.append("before")
                guard helper == nil else { return }
                remote.beginExternalWork()
                helper = TestThread {
                    latch.wait()
                    remote.submit {
                        log.append("work at \(EventLoop.current.now)")
                        remote.endExternalWork()
                    }
                }
            }
            try loop.run()
            helper?.join()
            expectEqual(log.value, ["before", "after", "work at 0.0 s", "before", "after", "timer at 1.0 s"])
        }
    }

    @Test(.inLoop, arguments: [true, false]) func afterAStopAnExplicitTurnWaitsInSpiteOfAHook(isVirtual: Bool) throws {
        try EventLoop.withLoop(clock: isVirtual ? VirtualClock() : nil) { loop in
            var hook: EventLoop.Watch?
            var calls = 0
            hook = loop.beforeWaiting {
                calls += 1
                if calls == 1000 { hook?.cancel() }
            }
            var fired = false
            loop.schedule(after: .milliseconds(1)) { fired = true }
            loop.stop()
            while !fired { try loop.turn(.wait) }
            expect(calls < 10)
            hook?.cancel()
        }
    }
}
