/// The effect of cancelling a timer, and when its closure is released.
struct TimerCancellationTests {
    private let loop = EventLoop.current

    @Test(.inLoop) func aHandleOfTheDeadDoesNotCancelTheSuccessor() throws {
        let old = loop.schedule(after: .seconds(1)) {}
        old.cancel()
        var fired = false
        let new = loop.schedule(after: .seconds(1)) { fired = true }
        expect(!old.cancel())
        expect(!old.reschedule(at: .distantFuture))
        old.unref()
        expect(new.isActive && !old.isActive)
        try loop.run()
        expect(fired)
    }

    @Test(.inRealTime) func aHundredThousandRequestTimeoutsHardlyTouchTheTimerDescriptor() throws {
        let tally = Tally()
        _ = try loop.fileDescriptor
        for _ in 0..<1000 {
            let timers = (0..<100).map { _ in loop.schedule(after: .seconds(30), tally.bound()) }
            try loop.turn(.poll)
            for timer in timers { timer.cancel() }
            try loop.turn(.poll)
        }
        expectEqual(tally.alive, 0)
        expect((1...100).contains(loop.metrics.systemCalls[.timerSet] ?? 0))
    }

    @Test(.inLoop) func theClosuresEndMayStartAndCancelTimers() throws {
        var fired: [String] = []
        let other = loop.schedule(after: .seconds(2)) { fired.append("other") }
        var words: LastWords? = LastWords {
            other.cancel()
            for index in 0..<20 { loop.schedule(after: .seconds(3)) { fired.append("\(index)") } }
        }
        let timer = loop.schedule(after: .seconds(1)) { [words] in _ = withExtendedLifetime(words) { 0 } }
        words = nil
        expect(timer.cancel())
        try loop.run()
        let all: [String] = (0..<20).map { "\($0)" }
        expectEqual(fired, all)
    }
}
