/// Timers on a grid.
struct RepeatingTimerTests {
    private let loop = EventLoop.current
    private var clock: VirtualClock { loop.virtualClock }

    private func milliseconds(_ loop: EventLoop) -> Int { Int(loop.now.nanoseconds / 1_000_000) }

    @Test(.inLoop) func oneLateTickMakesUpForTheMissedOnesAndTheGridGoesOnUntilItCancelsItself() throws {
        let tally = Tally()
        var ticks: [Int] = []
        var timer: EventLoop.Timer?
        timer = loop.schedule(
            every: .milliseconds(10),
            tally.bound {
                ticks.append(milliseconds(loop))
                if ticks.count == 2 { clock.advance(by: .milliseconds(104)) }
                if ticks.count == 5 { expectEqual(timer?.cancel(), true) }
                expectEqual(tally.alive, 1, "its closure stays whole")
            })
        try loop.run()
        expectEqual(ticks, [10, 20, 124, 130, 140])
        expectEqual(tally.alive, 0)
        expect(!loop.isAlive)
    }

    @Test(.inLoop, arguments: [Duration.zero, .seconds(-5), Duration(secondsComponent: 0, attosecondsComponent: 1)])
    func anIntervalBelowANanosecondCountsAsOne(interval: Duration) throws {
        var ticks: [Int64] = []
        let timer = loop.schedule(every: interval) { ticks.append(loop.now.nanoseconds) }
        for _ in 0..<3 { try loop.turn(.wait) }
        expectEqual(ticks, [1, 2, 3])
        clock.advance(by: .seconds(3600))
        for _ in 0..<2 { try loop.turn(.wait) }
        expectEqual(ticks.count, 5, "thousands of millions of missed ticks are made up for by one")
        timer.cancel()
    }

    // MARK: Jitter

    @Test(.inLoop, arguments: [(1000, 300), (10, 1_000_000), (10, 10), (10, 0), (10, -5)])
    func eachTickHasAJitterOfItsOwnOfAtMostTheInterval(interval: Int, jitter: Int) throws {
        var delays: [Int] = []
        var timer: EventLoop.Timer?
        timer = loop.schedule(every: .milliseconds(interval), jitter: .milliseconds(jitter)) {
            delays.append(milliseconds(loop) - interval * (delays.count + 1))
            if delays.count == 100 { timer?.cancel() }
        }
        try loop.run()
        let most = max(min(jitter, interval), 0)
        expect(delays.count == 100 && delays.allSatisfy { 0...most ~= $0 }, "\(delays)")
        if most < 100 { return }
        // In 100 draws, fewer than 20 values, or none in one half, has a chance of less than 1 in 10^20.
        expect(Set(delays).count > 20 && delays.contains { $0 < most / 2 } && delays.contains { $0 > most / 2 })
    }

    @Test(.inLoop) func missedTicksWithJitterAreOne() throws {
        var ticks: [Int] = []
        let timer = loop.schedule(every: .seconds(1), jitter: .milliseconds(1)) { ticks.append(milliseconds(loop)) }
        clock.advance(by: .milliseconds(10_500))
        for _ in 0..<2 { try loop.turn(.wait) }
        expectEqual(ticks.first, 10_500)
        expect(11_000...11_001 ~= ticks.last!)
        expectEqual(ticks.count, 2)
        timer.cancel()
        try loop.run()
    }
}
