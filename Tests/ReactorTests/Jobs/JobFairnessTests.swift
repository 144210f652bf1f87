/// The order of jobs, and the limits of what they may delay.
struct JobFairnessTests {
    private let loop = EventLoop.current
    private var clock: VirtualClock { loop.virtualClock }

    @Test(.inLoop) func jobsThatTimersAndEventsMakeReadyRunInTheSameTurn() throws {
        let pipe = Ends.pipe()
        var order: [String] = []
        let watch = try loop.watch(pipe.near, for: .reading) { _ in
            order.append("event")
            take(from: pipe.near)
            loop.enqueue { order.append("job of the event") }
        }
        loop.schedule(after: .zero) {
            order.append("timer")
            loop.enqueue { order.append("job of the timer") }
        }
        loop.enqueue { order.append("job") }
        put(into: pipe.far)
        try loop.turn(.wait)
        expectEqual(order, ["job", "event", "job of the event", "timer", "job of the timer"])
        watch.cancel()
    }

    @Test(.inLoop) func aChainOfJobsThatFeedsItselfStarvesNeitherEventsNorTimers() throws {
        let pipe = Ends.pipe()
        var jobs = 0
        var reads = 0
        var fires = 0
        var isOver = false
        func again() {
            jobs += 1
            clock.advance(by: .nanoseconds(100))
            if !isOver { loop.enqueue(again) }
        }
        loop.enqueue(again)
        let watch = try loop.watch(pipe.near, for: .reading) { _ in
            reads += 1
            take(1, from: pipe.near)
        }
        let timer = loop.schedule(every: .microseconds(50)) { fires += 1 }
        put(10, into: pipe.far)
        for turn in 1...10 {
            let before = jobs
            try loop.turn(turn % 2 == 0 ? .poll : .wait)
            expectEqual(reads, turn)
            expectEqual(fires, turn)
            expect((1...10_000).contains(jobs - before))
        }
        isOver = true
        watch.cancel()
        timer.cancel()
        try loop.run()
    }

    @Test(.inLoop) func jobsThatAreLongFromTheFirstDelayTimersByAFew() throws {
        var done = 0
        var lateness: [Duration] = []
        for time in stride(from: 1, to: 2_000, by: 100) {
            let due = LoopInstant(nanoseconds: Int64(time) * 1_000_000)
            loop.schedule(at: due) { lateness.append(due.duration(to: loop.now)) }
        }
        for _ in 0..<1000 {
            loop.enqueue {
                done += 1
                clock.advance(by: .milliseconds(5))
            }
        }
        try loop.run()
        expectEqual(done, 1000)
        // Until the durations of the jobs are known it takes eight between two looks at the clock; then one.
        expect(lateness.max()! <= .milliseconds(40))
        expect(lateness.dropFirst(2).max()! <= .milliseconds(10))
    }

    @Test(.inRealTime) func quickJobsReadTheClockRarely() throws {
        loop.enqueue {
            let end = loop.now.advanced(by: .milliseconds(3))
            spin { loop.now >= end }
        }
        for _ in 0..<5000 { loop.enqueue {} }
        var turns = 0
        while loop.isReady {
            try loop.turn(.poll)
            turns += 1
        }
        // A long one does not make the others yield.
        expect(turns <= 8)
    }

    @Test(.inRealTime) func theOrderSurvivesTheBudget() throws {
        var order: [Int] = []
        for index in 0..<10_000 {
            loop.enqueue {
                order.append(index)
                if index % 3 == 0 { loop.enqueue { order.append(10_000 + index) } }
            }
        }
        try loop.turn(.poll)
        expect(loop.isReady)
        try loop.run()
        expectEqual(order, Array(0..<10_000) + stride(from: 10_000, to: 20_000, by: 3))
    }

    @Test(.inRealTime) func aJobIsReleasedAfterItHasRun() throws {
        let tally = Tally()
        var living = 0
        for _ in 0..<3 { loop.enqueue(tally.bound { living += tally.alive }) }
        try loop.run()
        expectEqual(living, 3 + 2 + 1)
        expectEqual(tally.alive, 0)
    }

    // MARK: The end of a turn

    @Test(.inRealTime) func jobsForTheEndOfTheTurnRunAfterAllReadyJobsAndThoseThatTheseAdd() throws {
        var order: [Int] = []
        loop.enqueue {
            loop.enqueueAtEndOfTurn(ClosureJob { order.append(4) })
            loop.enqueue {
                order.append(1)
                loop.enqueue { order.append(3) }
            }
        }
        loop.enqueue { order.append(0) }
        loop.enqueue { loop.enqueue { order.append(2) } }
        try loop.turn(.poll)
        expectEqual(order, [0, 1, 2, 3, 4])
    }

    @Test(.inRealTime) func jobsForTheEndOfTheTurnRunBeforeATurnInsideAHandlerWaits() throws {
        var hasRun = false
        loop.enqueue {
            loop.enqueueAtEndOfTurn(ClosureJob { hasRun = true })
            try! loop.turn(.poll)
            expect(hasRun)
        }
        try loop.turn(.poll)
    }

    /// Jobs that enqueue others delay jobs for the end of the turn, but not forever.
    @Test(.inLoop) func aChainWithoutEndPutsTheEndOfTheTurnOffForSomeBatches() throws {
        var jobs = 0
        var seen: Int?
        func next() {
            jobs += 1
            if jobs == 1 { loop.enqueueAtEndOfTurn(ClosureJob { seen = jobs }) }
            if jobs < 100_000 { loop.enqueue(next) }
        }
        loop.enqueue(next)
        try loop.run(until: { seen != nil })
        expect(seen! > 1024 && seen! <= 10 * 1024)
        expect(jobs < 100_000)
    }
}
