/// Random numbers from the loop's calls, so that a simulation can repeat them.
package struct LoopRandom: RandomNumberGenerator {
    private let loop: EventLoop

    package init(_ loop: EventLoop) { self.loop = loop }

    package func next() -> UInt64 { loop.kernel.table.random() }
}

extension EventLoop {
    /// Starts a timer whose ticks are each delayed from their point on the grid by up to `most`, so that there are as
    /// many as without jitter.
    func startTimer(
        every step: Int64, jitter most: Int64, _ body: @escaping () -> Void, _ file: StaticString, _ line: UInt
    ) -> Timer {
        // `nil` until it has been started: then it does not fire.
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
                // Moved on before the body, which may cancel the timer.
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
