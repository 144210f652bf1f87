/// The order in which timers fire, by a clock that stands still.
struct TimerOrderTests {
    private let loop = EventLoop.current
    private var clock: VirtualClock { loop.virtualClock }

    @Test(.inLoop) func earlierDeadlinesFireFirst() throws {
        var fired: [(Int, LoopInstant)] = []
        for delay in [30, 10, 20] {
            loop.schedule(after: .milliseconds(delay)) { fired.append((delay, loop.now)) }
        }
        try loop.run()
        expectEqual(fired.map(\.0), [10, 20, 30])
        expectEqual(fired.map(\.1.nanoseconds), [10_000_000, 20_000_000, 30_000_000])
    }

    @Test(.inLoop) func equalDeadlinesFireInTheOrderOfTheirCreation() throws {
        var fired: [Int] = []
        let deadline = { (index: Int) in index * 7 % 10 }
        for index in 0..<1000 { loop.schedule(after: .milliseconds(deadline(index))) { fired.append(index) } }
        try loop.run()
        let expected = (0..<1000).sorted { (deadline($0), $0) < (deadline($1), $1) }
        expectEqual(fired, expected)
    }

    @Test(.inLoop) func dueTimersOfOneTurnFireByDeadlineAndNotByCreation() throws {
        var fired: [Int] = []
        for delay in [3, 1, 2] { loop.schedule(after: .seconds(delay)) { fired.append(delay) } }
        clock.advance(by: .seconds(10))
        try loop.turn(.poll)
        expectEqual(fired, [1, 2, 3])
    }

    @Test(.inLoop) func pastPresentAndNegativeDeadlinesFireInTheNextTurn() throws {
        clock.advance(by: .seconds(5))
        try EventLoop.withLoop(clock: clock) { loop in
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
    }

    @Test(.inLoop) func aTimerThatItsOwnBatchStartsWaitsForTheNextTurn() throws {
        var fired: [String] = []
        loop.schedule(after: .milliseconds(1)) {
            fired.append("first")
            loop.schedule(at: LoopInstant(nanoseconds: 0)) { fired.append("started late") }
        }
        loop.schedule(after: .milliseconds(2)) { fired.append("second") }
        clock.advance(by: .milliseconds(5))
        try loop.turn(.poll)
        expectEqual(fired, ["first", "second"])
        try loop.turn(.poll)
        expectEqual(fired, ["first", "second", "started late"])
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

    @Test(.inLoop) func aTimerMovesToAnotherDeadline() throws {
        var fired: [String] = []
        let early = loop.schedule(after: .seconds(1)) { fired.append("early") }
        loop.schedule(after: .seconds(2)) { fired.append("middle") }
        let late = loop.schedule(after: .seconds(3)) { fired.append("late") }
        expect(early.reschedule(at: loop.now.advanced(by: .seconds(4))))
        expect(late.reschedule(at: LoopInstant(nanoseconds: -1)))
        try loop.run()
        expectEqual(fired, ["late", "middle", "early"])
        expectEqual(clock.now.nanoseconds, 4_000_000_000)
        expect(!early.reschedule(at: loop.now))
        expect(!loop.isAlive)
    }

    /// Starts, moves and cancels at random, compared with a sorted model.
    @Test(.inLoop, arguments: [1, 2, 3]) func theHeapAgreesWithASortedList(seed: UInt64) throws {
        var dice = SplitMix64(seed)
        var fired: [Int] = []
        var timers: [EventLoop.Timer] = []
        // The deadline of each live timer, and its place in the sequence of starts and moves.
        var model: [Int: (deadline: Int64, place: Int)] = [:]
        for step in 0..<3000 {
            let deadline = Int64.random(in: 0..<500, using: &dice)
            let index = timers.isEmpty ? 0 : Int.random(in: 0..<timers.count, using: &dice)
            switch Int.random(in: 0..<4, using: &dice) {
            case 0 where !timers.isEmpty:
                expectEqual(timers[index].cancel(), (model.removeValue(forKey: index) != nil))
            case 1 where !timers.isEmpty:
                let moved = timers[index].reschedule(at: LoopInstant(nanoseconds: deadline))
                expectEqual(moved, (model[index] != nil))
                if moved { model[index] = (deadline, step) }
            default:
                let id = timers.count
                model[id] = (deadline, step)
                timers.append(
                    loop.schedule(at: LoopInstant(nanoseconds: deadline)) { fired.append(id) })
            }
        }
        try loop.run()
        let expected = model.sorted {
            ($0.value.deadline, $0.value.place) < ($1.value.deadline, $1.value.place)
        }
        expectEqual(fired, expected.map(\.key))
    }
}
