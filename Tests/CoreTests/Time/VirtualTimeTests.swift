@testable import PromisesTestSupport

/// A virtual clock and the tasks of `Promise { … }`: it stands still while they work, and advances while they wait for
/// the loop.
struct VirtualTimeTasksTests {
    @Test func aTaskMayAwaitATimerOfTheLoop() throws {
        try withVirtualTime { clock throws in
            let timer = after(.seconds(60)).map { 7 }
            expect(Promise { try await timer.asPromise().value }, gives: 7)
            expectEqual(clock.now, LoopInstant(nanoseconds: 60_000_000_000))
        }
    }

    @Test func theTimeLimitOfAHangPassesWhileTheTaskWaits() throws {
        try withVirtualTime { clock throws in
            let timer = after(.seconds(3600)).asPromise()
            let waiting = Promise { try await timer.value }
            #expect(throws: PromiseError.timedOut) { try hang(waiting, timeout: .seconds(5)) }
            waiting.cancel()
            try EventLoop.current.run()
            expectEqual(clock.now, LoopInstant(nanoseconds: 5_000_000_000))
        }
    }

    @Test func timeStandsStillBetweenTwoWaits() throws {
        try withVirtualTime { clock throws in
            var seconds = 0
            let tick = EventLoop.current.schedule(every: .seconds(1)) { seconds += 1 }
            let (first, second) = (after(.milliseconds(1500)).asPromise(), after(.milliseconds(3500)).asPromise())
            try hang(
                Promise {
                    try await first.value
                    for _ in 0..<100 { await Task.yield() }
                    try await second.value
                })
            tick.cancel()
            expectEqual(seconds, 3)
            expectEqual(clock.now, LoopInstant(nanoseconds: 3_500_000_000))
        }
    }

    /// The loop may settle the promise while the task is being added to its waiters.
    @Test func timeStandsStillWhenThePromiseSettlesAsTheWaitBegins() throws {
        try withVirtualTime { _ throws in
            let milliseconds = Shared(0)
            let tick = EventLoop.current.schedule(every: .milliseconds(1)) { milliseconds.change { $0 += 1 } }
            let timers = (1...5000).map { after(.microseconds($0 * 1000 + 500)).asPromise() }
            let late = try hang(
                Promise {
                    var late = 0
                    for (index, timer) in timers.enumerated() {
                        try await timer.value
                        if milliseconds.value != index + 1 { late += 1 }
                    }
                    return late
                })
            tick.cancel()
            expectEqual(late, 0)
        }
    }

    @Test func manyTasksThatWaitLetTimePass() throws {
        try withVirtualTime { _ throws in
            let timers = (1...50).map { number in after(.seconds(Double(number))).map { number }.asPromise() }
            let tasks = timers.map { timer in Promise { try await timer.value } }
            expect(when(fulfilled: tasks).map { $0.reduce(0, +) }, gives: 1275)
        }
    }

    @Test(.inLoop) func theLoopWakesWhenAllOtherWorkHasEnded() throws {
        let loop = EventLoop.current
        let remote = loop.remote
        remote.beginExternalWork()
        remote.beginExternalWork()
        remote.beginWaitingForLoop()
        try loop.turn(.poll)
        expectEqual(loop.keepAliveReport.readyJobs, 0)
        TestThread { remote.endExternalWork() }.join()
        // The job that wakes the loop. All other work waits for the loop, so the clock may advance.
        expectEqual(loop.keepAliveReport.readyJobs, 1)
        remote.endWaitingForLoop()
        remote.endExternalWork()
        expectEqual(loop.metrics.externalWork, 0)
    }

    @Test func aTaskThatWaitsOutlastsTasksThatWork() throws {
        for _ in 0..<scaled(500) {
            try withVirtualTime { clock throws in
                let timer = after(.seconds(60)).asPromise()
                let waiting = Promise { try await timer.value }
                _ = Promise { for _ in 0..<10 { await Task.yield() } }
                try hang(waiting)
                expectEqual(clock.now, LoopInstant(nanoseconds: 60_000_000_000))
                try EventLoop.current.run()
            }
        }
    }
}

struct VirtualTimeScopeTests {
    @Test func anHourPassesAtOnce() {
        let end = withVirtualTime {
            hang(after(.seconds(3600)))
            return EventLoop.current.now
        }
        expectEqual(end, LoopInstant(nanoseconds: 3_600_000_000_000))
    }

    @Test func theTestMayMoveTheClock() throws {
        try withVirtualTime { clock throws in
            let guarantee = after(.seconds(10))
            clock.advance(by: .seconds(10))
            try EventLoop.current.turn(.poll)
            expect(guarantee.isFulfilled)
        }
    }

    @Test func theOuterLoopIsBackAfterwardsAlsoWhenTheBodyThrows() {
        let outer = EventLoop.current
        #expect(throws: Flaw.self) {
            try withVirtualTime { () throws -> Void in
                expect(EventLoop.current !== outer)
                throw Flaw()
            }
        }
        expect(EventLoop.current === outer)
    }

    @Test func whatIsLeftIsReported() {
        let lines = logged {
            withVirtualTime { Promise<Int>.pending().promise.map { $0 }.ignoringErrors() }
        }
        expect(lines.contains { $0.contains("undelivered handler") || $0.contains("abandoned") })
    }
}
