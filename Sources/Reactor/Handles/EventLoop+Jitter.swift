/// Random numbers from the loop's system calls, repeatable in a simulation.
package struct LoopRandom: RandomNumberGenerator {
    private let loop: EventLoop

    package init(_ loop: EventLoop) { self.loop = loop }

    package func next() -> UInt64 { loop.kernel.table.random() }
}

extension EventLoop {
    /// Starts a timer that delays each tick by up to `most` from its point on the grid. The number of ticks does not
    /// change.
    func startTimer(
        every step: Int64, jitter most: Int64, _ body: @escaping () -> Void, _ file: StaticString, _ line: UInt
    ) -> Timer {
        // `nil` until started; the timer does not fire earlier.
        var timer: Timer?
        var random = LoopRandom(self)
        var place = LoopInstant.deadline(step, after: now.nanoseconds)
        func draw() {
            let delay = Int64.random(in: 0...most, using: &random)
            _ = timer?.reschedule(at: LoopInstant(nanoseconds: LoopInstant.deadline(delay, after: place)))
        }
        let ticking = schedule(
            every: .nanoseconds(step),
            {
                // Before the call, because the body may cancel the timer.
                let missed = max(EventLoop.ofCurrentThread.now.nanoseconds - place - most, 0) / step
                place = LoopInstant.deadline((missed + 1) * step, after: place)
                draw()
                body()
            }, file: file, line: line)
        timer = ticking
        draw()
        return ticking
    }
}
