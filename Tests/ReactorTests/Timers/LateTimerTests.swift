/// Several timers that are due in one turn of a late loop, and the jobs that they make ready.
struct LateTimerTests {
    private let loop = EventLoop.current
    private var clock: VirtualClock { loop.virtualClock }

    /// Calls `body` with a loop, and with a closure that delays the loop beyond a time.
    private func onLateLoop(isVirtual: Bool, _ body: (EventLoop, (LoopInstant) -> Void) throws -> Void) rethrows {
        try EventLoop.withLoop(clock: isVirtual ? clock : nil) { loop in
            try body(loop) { moment in
                if isVirtual { clock.advance(to: moment) } else { spin { loop.now > moment } }
            }
        }
    }

    /// Enqueues a job that enqueues a job, and so on.
    private func chain(_ length: Int, on loop: EventLoop, _ step: @escaping () -> Void) {
        if length == 0 { return }
        loop.enqueue {
            step()
            self.chain(length - 1, on: loop, step)
        }
    }

    @Test(.inLoop, arguments: [true, false]) func jobsOfOneRunBeforeTheNextFires(isVirtual: Bool) throws {
        try onLateLoop(isVirtual: isVirtual) { loop, block in
            var order: [String] = []
            let begin = loop.now
            for (index, offset) in [1, 2, 2, 3].enumerated() {
                loop.schedule(at: begin.advanced(by: .milliseconds(offset))) {
                    order.append("timer \(index)")
                    chain(3, on: loop) { order.append("job of \(index)") }
                }
            }
            block(begin.advanced(by: .milliseconds(4)))
            // The real time of a turn's jobs is limited, so a slow machine needs several.
            if isVirtual { try loop.turn(.poll) } else { try loop.run() }
            expectEqual(order, (0..<4).flatMap { ["timer \($0)"] + [String](repeating: "job of \($0)", count: 3) })
        }
    }

    @Test(.inLoop) func jobsForTheEndOfTheTurnWaitForAllTimers() throws {
        var order: [String] = []
        for number in 1...2 {
            loop.schedule(after: .seconds(number)) {
                order.append("timer \(number)")
                loop.enqueueAtEndOfTurn(ClosureJob { order.append("end \(number)") })
                loop.enqueue { order.append("job \(number)") }
            }
        }
        clock.advance(by: .seconds(3))
        try loop.turn(.poll)
        expectEqual(order, ["timer 1", "job 1", "timer 2", "job 2", "end 1", "end 2"])
    }

    @Test(.inLoop) func whenJobsExceedTheirBudgetTheOtherTimersFireInTheNextTurn() throws {
        var (fired, done) = (0, 0)
        for _ in 0..<3 {
            loop.schedule(after: .seconds(1)) {
                fired += 1
                chain(1500, on: loop) { done += 1 }
            }
        }
        clock.advance(by: .seconds(1))
        for turn in 1...2 {
            try loop.turn(.poll)
            expectEqual(fired, turn)
            expectEqual(done, turn * 1500)
        }
        try loop.run()
        expectEqual(fired, 3)
        expectEqual(done, 3 * 1500)
    }

    @Test(.inLoop) func longJobsLeaveTheOtherTimersToTheNextTurnToo() throws {
        var order: [String] = []
        for number in 1...2 {
            loop.schedule(after: .seconds(number)) {
                order.append("timer \(number)")
                chain(6, on: loop) {
                    order.append("job")
                    clock.advance(by: .milliseconds(5))
                }
            }
        }
        clock.advance(by: .seconds(3))
        try loop.turn(.poll)
        expectEqual(order, ["timer 1"] + [String](repeating: "job", count: 6))
        try loop.turn(.poll)
        expectEqual(order.count, 14)
    }

    @Test(.inLoop) func aJobBetweenTwoMayCancelTheSecondAndTurnTheLoop() throws {
        var order: [String] = []
        let third = loop.schedule(after: .seconds(3)) { order.append("third") }
        loop.schedule(after: .seconds(1)) {
            loop.enqueue {
                third.cancel()
                try! loop.turn(.poll)
                order.append("turned")
            }
        }
        loop.schedule(after: .seconds(2)) { order.append("second") }
        loop.schedule(after: .seconds(4)) { order.append("fourth") }
        clock.advance(by: .seconds(5))
        try loop.turn(.poll)
        expectEqual(order, ["second", "fourth", "turned"])
    }
}
