/// When `run()` ends.
struct RunAndStopTests {
    private let loop = EventLoop.current

    @Test(.inRealTime) func withNothingToWaitForItEndsAtOnce() throws {
        try loop.run()
        expectEqual(loop.metrics.turns, 0)
        let held = try loop.run { false }
        expect(!held)
        expectEqual(loop.metrics.turns, 0)
    }

    @Test(.inRealTime) func aStopBeforeItStartsEndsTheNextOneAndNoMore() throws {
        var ran = false
        loop.enqueue { ran = true }
        loop.stop()
        loop.stop()
        try loop.run()
        expect(!ran)
        expectEqual(loop.metrics.turns, 0)
        try loop.run()
        expect(ran)
    }

    @Test(.inRealTime) func aStopInACallbackEndsItAfterThePresentTurnWithoutAskingTheKernelAgain() throws {
        var log: [String] = []
        let pipes = [Ends.pipe(), Ends.pipe()]
        for pipe in pipes {
            _ = try loop.watch(pipe.near, for: .reading) { _ in
                log.append("event")
                take(from: pipe.near)
                loop.stop()
                loop.stop()
                loop.enqueue { log.append("job") }
            }
            put(into: pipe.far)
        }
        try loop.run()
        expectEqual(log, ["event", "event", "job", "job"])
        expectEqual(loop.metrics.turns, 1)
        expectEqual(loop.metrics.systemCalls[.epollWait], 1)

        put(into: pipes[0].far)
        try loop.run()
        expectEqual(log.count, 6, "it can run again")
    }

    @Test(.inRealTime) func aStopFromAnotherThreadEndsItsSleep() throws {
        let (remote, hold) = (loop.remote, loop.hold())
        let watchdog = loop.schedule(after: .seconds(20)) { hold.cancel() }
        let helper = TestThread { expect(remote.stop()) }
        try loop.run()
        helper.join()
        expect(watchdog.cancel() && hold.cancel(), "it slept on")
    }

    @Test(.inLoop) func runUntilTellsWhetherItsConditionHolds() throws {
        var fires = 0
        let timer = loop.schedule(every: .seconds(1)) { fires += 1 }
        expect(try loop.run { fires == 3 } && fires == 3)
        let turns = loop.metrics.turns
        expect(try loop.run { true })
        expectEqual(loop.metrics.turns, turns, "a condition that holds already costs no turn")
        timer.cancel()
        loop.schedule(after: .seconds(1)) {}
        expect(!(try loop.run { false }), "in the end")
        loop.schedule(after: .seconds(1)) { loop.stop() }
        loop.schedule(after: .seconds(2)) {}
        expect(!(try loop.run { false }), "at a stop")
        struct Refusal: Error {}
        #expect(throws: Refusal.self) { try EventLoop.current.run { throw Refusal() } }
        expect(loop.isAlive)
    }
}
