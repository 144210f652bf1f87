import Reactor
import TestSupport
import Testing

/// Timers on a grid.
@Suite struct RepeatingTimerTests {
    private let clock = VirtualClock()

    private func milliseconds(_ loop: EventLoop) -> Int { Int(loop.now.nanoseconds / 1_000_000) }

    @Test func itFiresOncePerIntervalUntilItCancelsItself() throws {
        try EventLoop.withLoop(clock: clock) { loop in
            var ticks: [Int] = []
            var timer: EventLoop.Timer?
            timer = loop.schedule(every: .milliseconds(10)) {
                ticks.append(milliseconds(loop))
                if ticks.count == 4 { expectEqual(timer?.cancel(), true) }
            }
            try loop.run()
            expectEqual(ticks, [10, 20, 30, 40])
            expect(!loop.isAlive)
        }
    }

    @Test func aCallbackThatBlocksForTenIntervalsIsMadeUpForOnceAndTheGridGoesOn() throws {
        try EventLoop.withLoop(clock: clock) { loop in
            var ticks: [Int] = []
            var timer: EventLoop.Timer?
            timer = loop.schedule(every: .milliseconds(10)) {
                ticks.append(milliseconds(loop))
                if ticks.count == 1 { clock.advance(by: .milliseconds(104)) }
                if ticks.count == 4 { timer?.cancel() }
            }
            try loop.run()
            expectEqual(ticks, [10, 114, 120, 130])
        }
    }

    @Test func aLateTickDoesNotShiftTheOnesAfterIt() throws {
        try EventLoop.withLoop(clock: clock) { loop in
            var ticks: [Int] = []
            var timer: EventLoop.Timer?
            timer = loop.schedule(every: .milliseconds(10)) {
                ticks.append(milliseconds(loop))
                clock.advance(by: .milliseconds(3))
                if ticks.count == 3 { timer?.cancel() }
            }
            clock.advance(by: .milliseconds(17))
            try loop.run()
            expectEqual(ticks, [17, 20, 30])
        }
    }

    @Test func itsClosureStaysWholeWhileItCancelsItselfAndGoesAfterwards() throws {
        try EventLoop.withLoop(clock: clock) { loop in
            let tally = Tally()
            var timer: EventLoop.Timer?
            var living: [Int] = []
            timer = loop.schedule(
                every: .seconds(1),
                tally.bound {
                    living.append(tally.alive)
                    timer?.cancel()
                    living.append(tally.alive)
                })
            try loop.run()
            expectEqual(living, [1, 1])
            expectEqual(tally.alive, 0)
        }
    }

    @Test(arguments: [Duration.zero, .seconds(-5), Duration(secondsComponent: 0, attosecondsComponent: 1)])
    func anIntervalBelowANanosecondCountsAsOne(interval: Duration) throws {
        try EventLoop.withLoop(clock: clock) { loop in
            var ticks: [Int64] = []
            let timer = loop.schedule(every: interval) { ticks.append(loop.now.nanoseconds) }
            for _ in 0..<3 { try loop.turn(.wait) }
            expectEqual(ticks, [1, 2, 3])
            clock.advance(by: .seconds(3600))
            for _ in 0..<2 { try loop.turn(.wait) }
            expectEqual(ticks.count, 5, "thousands of millions of missed ticks are made up for by one")
            timer.cancel()
        }
    }

    @Test func twoOfDifferentIntervalsKeepTheirOwnGrids() throws {
        try EventLoop.withLoop(clock: clock) { loop in
            var ticks: [String] = []
            let fast = loop.schedule(every: .milliseconds(20)) { ticks.append("fast \(milliseconds(loop))") }
            let slow = loop.schedule(every: .milliseconds(30)) { ticks.append("slow \(milliseconds(loop))") }
            loop.schedule(after: .milliseconds(65)) {
                fast.cancel()
                slow.cancel()
            }
            try loop.run()
            // At 60 ms the slow one stands in front: it was put there at 30 ms, the fast one at 40 ms.
            expectEqual(ticks, ["fast 20", "slow 30", "fast 40", "slow 60", "fast 60"])
        }
    }

    @Test func movingItBeginsANewGrid() throws {
        try EventLoop.withLoop(clock: clock) { loop in
            var ticks: [Int] = []
            var timer: EventLoop.Timer?
            timer = loop.schedule(every: .milliseconds(10)) {
                ticks.append(milliseconds(loop))
                if ticks.count == 3 { timer?.cancel() }
            }
            timer?.reschedule(at: loop.now.advanced(by: .milliseconds(25)))
            try loop.run()
            expectEqual(ticks, [25, 35, 45])
        }
    }

    @Test func byTheRealClockItIsNeverEarlyAndDoesNotDrift() throws {
        try EventLoop.withLoop { loop in
            let start = loop.now
            var fires = 0
            var timer: EventLoop.Timer?
            timer = loop.schedule(every: .milliseconds(2)) {
                fires += 1
                expect(loop.now >= start.advanced(by: .milliseconds(2 * fires)))
                if fires == 20 { timer?.cancel() }
            }
            try loop.run()
            expectEqual(fires, 20)
            expect(loop.metrics.turns <= 3 * fires)
        }
    }
}
