/// Timers started with a delay by the real clock: their deadlines are computed when the loop next reads it.
struct UndatedTimerTests {
    private let loop = EventLoop.current

    /// More than the loop leaves undated.
    private let many = 40

    @Test(.inRealTime) func noneIsEarlyHoweverLongTheHandlerTakesThatHasStartedIt() throws {
        var early = 0
        var fired = 0
        let delay = Duration.microseconds(500)
        for _ in 0..<many {
            loop.schedule(after: .zero) {
                let start = loop.now
                for _ in 0..<3 {
                    loop.schedule(after: delay) {
                        fired += 1
                        if start.duration(to: loop.now) < delay { early += 1 }
                    }
                }
                // Nothing reads the loop's clock here.
                let work = ContinuousClock.now
                while ContinuousClock.now - work < .microseconds(200) {}
            }
        }
        try loop.run()
        expectEqual(fired, 3 * many)
        expectEqual(early, 0)
    }

    @Test(.inRealTime) func equalDelaysFireInTheOrderOfTheirStarts() throws {
        var fired: [Int] = []
        for index in 0..<many {
            // The middle ones are cancelled, so that others move to their places.
            let cancelled = loop.schedule(after: .zero) { fired.append(-1) }
            loop.schedule(after: .zero) { fired.append(index) }
            expect(cancelled.cancel())
        }
        try loop.run()
        expectEqual(fired, Array(0..<many))
    }

    @Test(.inRealTime) func aReadingOfTheClockIsNoEarlierThanTheStartsBeforeIt() throws {
        var fired: [String] = []
        loop.schedule(after: .microseconds(100)) { fired.append("started first") }
        let moment = loop.now + .microseconds(100)
        loop.schedule(at: moment) { fired.append("started last") }
        let next = try #require(loop.nextDeadline)
        expect(next <= moment)
        try loop.run()
        expectEqual(fired, ["started first", "started last"])
    }

    @Test(.inRealTime) func theyAreCancelledMovedAndUnreferencedAsOthers() throws {
        let tally = Tally()
        var fired: [Int] = []
        let timers = (0..<many).map { index in
            let object = tally.bound()
            return loop.schedule(after: .seconds(3600)) {
                object()
                fired.append(index)
            }
        }
        expect(timers.allSatisfy { $0.isActive })
        // The latest ones have no deadline yet; in any order.
        for index in stride(from: many - 1, through: 0, by: -3) { expect(timers[index].cancel()) }
        for index in stride(from: many - 2, through: 0, by: -3) { timers[index].unref() }
        let left = (0..<many).filter { (many - 1 - $0) % 3 != 0 }
        let unreferenced = left.filter { (many - 1 - $0) % 3 == 1 }
        expectEqual(loop.keepAliveReport.timers, left.count - unreferenced.count)
        expectEqual(loop.keepAliveReport.unreferencedTimers, unreferenced.count)
        expectEqual(tally.alive, left.count)
        for index in stride(from: many - 3, through: 0, by: -3) { expect(timers[index].reschedule(at: loop.now)) }
        try loop.run()
        expectEqual(fired, left.filter { (many - 1 - $0) % 3 == 2 }.reversed())
        expectEqual(tally.alive, unreferenced.count)
    }

    @Test(.inRealTime) func aHandleWorksWhileAnotherLoopOfItsThreadIsTheCurrentOne() throws {
        let outer = EventLoop.current
        let first = outer.schedule(after: .seconds(1)) {}
        let second = EventLoop.withLoop { inner in
            expect(first.isActive && first.cancel() && !first.isActive)
            let second = inner.schedule(after: .seconds(1)) {}
            // Driven inside, the outer loop is the current one.
            try? outer.turn(.poll)
            outer.schedule(after: .zero) { expect(second.isActive) }
            try? outer.turn(.poll)
            return second
        }
        expect(!second.isActive && !second.cancel())
    }
}
