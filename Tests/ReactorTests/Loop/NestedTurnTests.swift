/// Turning the loop inside one of its own callbacks.
struct NestedTurnTests {
    private let loop = EventLoop.current

    @Test(.inLoop) func eventsAlreadyFetchedAreDeliveredOnceAndInOrder() throws {
        let pipes = (0..<4).map { _ in Ends.pipe() }
        var log: [String] = []
        for (index, pipe) in pipes.enumerated() {
            _ = try loop.watch(pipe.near, for: .reading) { _ in
                take(from: pipe.near)
                log.append("begin \(index)")
                if index == 1 { try! loop.turn(.poll) }
                log.append("end \(index)")
            }
        }
        for pipe in pipes { put(into: pipe.far) }
        try loop.turn(.wait)
        expectEqual(log, ["begin 0", "end 0", "begin 1", "begin 2", "end 2", "begin 3", "end 3", "end 1"])
        expectEqual(loop.metrics.events, 4)

        put(into: pipes[0].far)
        try loop.turn(.wait)
        expectEqual(log.suffix(2), ["begin 0", "end 0"], "the outer loop goes on")
    }

    @Test(.inLoop) func aWatchThatTheNestedTurnCancelsIsNotServedByTheOuterOne() throws {
        let pipes = (0..<3).map { _ in Ends.pipe() }
        var log: [Int] = []
        var last: EventLoop.Watch?
        _ = try loop.watch(pipes[0].near, for: .reading) { _ in
            take(from: pipes[0].near)
            loop.enqueue { last?.cancel() }
            try! loop.turn(.poll)
            log.append(0)
        }
        _ = try loop.watch(pipes[1].near, for: .reading) { _ in
            take(from: pipes[1].near)
            log.append(1)
        }
        last = try loop.watch(pipes[2].near, for: .reading) { _ in log.append(2) }
        for pipe in pipes { put(into: pipe.far) }
        try loop.turn(.wait)
        try loop.turn(.poll)
        expectEqual(log, [1, 0])
    }

    @Test(.inLoop) func dueTimersFireOnceBetweenAnOuterAndANestedTurn() throws {
        var log: [String] = []
        for index in 0..<3 {
            loop.schedule(after: .seconds(1)) {
                log.append("begin \(index)")
                if index == 0 { try! loop.turn(.poll) }
                log.append("end \(index)")
            }
        }
        try loop.run()
        expectEqual(log, ["begin 0", "begin 1", "end 1", "begin 2", "end 2", "end 0"])
        expectEqual(loop.metrics.timersFired, 3)
    }

    @Test(.inLoop) func aRepeatingTimerMayTickInsideItsOwnCallback() throws {
        var depth = 0
        var ticks: [String] = []
        var timer: EventLoop.Timer?
        timer = loop.schedule(every: .seconds(1)) {
            depth += 1
            ticks.append("\(loop.now) at depth \(depth)")
            if depth == 1 { try! loop.turn(.wait) }
            depth -= 1
            timer?.cancel()
        }
        try loop.run()
        expectEqual(ticks, ["1.0 s at depth 1", "2.0 s at depth 2"])
    }

    @Test(.inLoop) func aStopEndsTheInnermostRunOnly() throws {
        var log: [String] = []
        loop.schedule(after: .seconds(1)) {
            loop.schedule(after: .seconds(1)) { loop.stop() }
            try! loop.run()
            log.append("inner ended at \(loop.now)")
        }
        loop.schedule(after: .seconds(3)) { log.append("outer still runs at \(loop.now)") }
        try loop.run()
        expectEqual(log, ["inner ended at 2.0 s", "outer still runs at 3.0 s"])
    }
}

/// Turns inside the `deinit` of a job that is discarded.
struct TurnWhileDiscardingTests {
    enum Drive: CaseIterable { case turn, readyJobs }

    /// A job whose release calls `body`.
    private func job(_ body: @escaping () -> Void) -> Unmanaged<Job> {
        .passRetained(InternalJob({}, ifLoopEnds: body))
    }

    @Test(.inLoop, arguments: Drive.allCases) func discardWhatIsDestroyedThereAndNestNothingLater(_ drive: Drive) {
        let loop = EventLoop.current
        var log: [String] = []
        loop.jobs.discard(
            job {
                loop.jobs.discard(job { log.append("before the turn") })
                loop.enqueue { loop.jobs.discard(job { log.append("in the turn") }) }
                if drive == .turn { try! loop.turn(.poll) } else { loop.runReadyJobs() }
                log.append("after the turn")
                loop.jobs.discard(job { log.append("after the deinit") })
                log.append("end of the deinit")
            })
        expectEqual(
            log, ["before the turn", "in the turn", "after the turn", "end of the deinit", "after the deinit"])
        expect(!loop.jobs.isDiscarding)
    }
}
