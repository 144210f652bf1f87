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
}

struct VirtualTimeScopeTests {
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
