/// The order in which timers fire, by a clock that stands still.
struct TimerOrderTests {
    private let loop = EventLoop.current
    private var clock: VirtualClock { loop.virtualClock }

    @Test(.inLoop) func pastPresentAndNegativeDeadlinesFireInTheNextTurn() throws {
        clock.advance(by: .seconds(5))
        var fired: [String] = []
        loop.schedule(at: loop.now.advanced(by: .seconds(-3))) { fired.append("past") }
        loop.schedule(at: loop.now) { fired.append("now") }
        loop.schedule(after: .seconds(-1)) { fired.append("negative") }
        loop.schedule(after: .seconds(Int64.min)) { fired.append("most negative") }
        loop.schedule(at: LoopInstant(nanoseconds: .min)) { fired.append("the beginning of time") }
        loop.schedule(after: .zero) { fired.append("zero") }
        expectEqual(fired, [])
        try loop.turn(.poll)
        expectEqual(fired, ["past", "now", "negative", "most negative", "the beginning of time", "zero"])
    }

    @Test(.inLoop) func aTimerThatItsOwnBatchStartsWaitsForTheNextTurn() throws {
        var fired: [String] = []
        loop.schedule(after: .milliseconds(1)) {
            fired.append("first")
            loop.schedule(at: LoopInstant(nanoseconds: 0)) { fired.append("started late") }
            loop.enqueue {
                loop.schedule(at: LoopInstant(nanoseconds: 0)) { fired.append("started between") }
            }
        }
        loop.schedule(after: .milliseconds(2)) { fired.append("second") }
        clock.advance(by: .milliseconds(5))
        try loop.turn(.poll)
        expectEqual(fired, ["first", "second"])
        try loop.turn(.poll)
        expectEqual(fired, ["first", "second", "started late", "started between"])
    }

    @Test(.inLoop) func aTimerOfNoDelayThatStartsItselfAnewFiresOnceATurnAndStarvesNothing() throws {
        let pipe = Ends.pipe()
        var fires = 0
        var reads = 0
        func again() {
            fires += 1
            loop.schedule(after: .zero, again)
        }
        loop.schedule(after: .zero, again)
        let watch = try loop.watch(pipe.near, for: .reading) { _ in
            reads += 1
            take(1, from: pipe.near)
        }
        put(3, into: pipe.far)
        for turn in 1...5 {
            try loop.turn(.wait)
            expectEqual(fires, turn)
            expectEqual(reads, min(turn, 3))
        }
        expectEqual(clock.now.nanoseconds, 0)
        watch.cancel()
    }
}

/// Timers compared with a list that is searched for the earliest one.
struct TimerModelTests {
    private struct Expected {
        let name: Int
        let timer: EventLoop.Timer
        var deadline: Int
        /// Timers with equal deadlines fire in the order in which they were started or moved.
        var order: Int
        var isReferenced = true
    }

    @Test(arguments: [1, 2, 3])
    func theyFireInOrderAndKeepTheirReferencesWhileOthersMove(seed: UInt64) throws {
        let clock = VirtualClock()
        try EventLoop.withLoop(clock: clock) { loop in
            var dice = SplitMix64(seed)
            var expected: [Expected] = []
            var fired: [Int] = []
            for step in 0..<2000 {
                let deadline = Int.random(in: 1...200, using: &dice)
                let moment = LoopInstant(nanoseconds: Int64(deadline))
                let chosen = expected.indices.randomElement(using: &dice)
                switch (Int.random(in: 0..<6, using: &dice), chosen) {
                case (0, let chosen?):
                    expect(expected.remove(at: chosen).timer.cancel())
                case (1, let chosen?):
                    expect(expected[chosen].timer.reschedule(at: moment))
                    expected[chosen].deadline = deadline
                    expected[chosen].order = step
                case (2, let chosen?):
                    expected[chosen].isReferenced.toggle()
                    if expected[chosen].isReferenced {
                        expected[chosen].timer.ref()
                    } else {
                        expected[chosen].timer.unref()
                    }
                case (3, _):
                    let timer = loop.startTimer(at: moment, ClosureJob { fired.append(step) })
                    expected.append(Expected(name: step, timer: timer, deadline: deadline, order: step))
                default:
                    let timer = loop.schedule(at: moment) { fired.append(step) }
                    expected.append(Expected(name: step, timer: timer, deadline: deadline, order: step))
                }
                expectEqual(loop.keepAliveReport.timers, expected.count { $0.isReferenced })
                expectEqual(loop.keepAliveReport.unreferencedTimers, expected.count { !$0.isReferenced })
                expectEqual(loop.nextDeadline?.nanoseconds, expected.map { Int64($0.deadline) }.min())
            }
            clock.advance(by: .nanoseconds(200))
            try loop.turn(.poll)
            expectEqual(fired, expected.sorted { ($0.deadline, $0.order) < ($1.deadline, $1.order) }.map(\.name))
            expect(loop.keepAliveReport.isEmpty)
        }
    }
}
