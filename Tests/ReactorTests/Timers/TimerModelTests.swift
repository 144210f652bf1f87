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

    @Test func timersOfAnEndedLoopReleaseTheirClosures() throws {
        let tally = Tally()
        EventLoop.withLoop(clock: VirtualClock()) { loop in
            loop.schedule(after: .seconds(1), tally.bound())
            loop.schedule(at: LoopInstant(nanoseconds: 5), tally.bound())
            loop.schedule(every: .seconds(1), tally.bound())
            expectEqual(tally.alive, 3)
        }
        expectEqual(tally.alive, 0)
    }

    @Test func timersThatAreStartedAfterTheLoopReleaseTheirClosuresAtOnce() throws {
        let tally = Tally()
        let ended = EventLoop.withLoop(clock: VirtualClock()) { $0 }
        for timer in [
            ended.schedule(after: .seconds(1), tally.bound()),
            ended.schedule(at: LoopInstant(nanoseconds: 5), tally.bound()),
            ended.schedule(every: .seconds(1), tally.bound()),
        ] {
            expect(!timer.isActive)
            expect(!timer.cancel())
        }
        expectEqual(tally.alive, 0)
    }
}
