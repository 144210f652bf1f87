/// Random numbers from the loop's calls, so that a simulation can repeat them.
package struct LoopRandom: RandomNumberGenerator {
    private let loop: EventLoop

    package init(_ loop: EventLoop) { self.loop = loop }

    package func next() -> UInt64 { loop.kernel.table.random() }
}

extension EventLoop {
    /// Calls `body` on this loop every `interval`, each time up to `jitter` later, until the timer is cancelled. Many
    /// processes that started together then do not call a server at the same moment.
    ///
    /// ```swift
    /// EventLoop.current.schedule(every: .seconds(60), jitter: .seconds(10)) { print("a minute, more or less") }
    /// ```
    ///
    /// Each tick is delayed from its point on the grid of `schedule(every:)` by a uniformly distributed time, so that
    /// there are as many ticks as without jitter.
    /// - Parameters:
    ///   - interval: the time between two points of the grid. Less than a nanosecond counts as one nanosecond.
    ///   - jitter: the longest delay of a tick after its point. More than `interval` counts as `interval`.
    ///   - body: called on the loop's thread.
    /// - Returns: the timer, which `cancel()` removes.
    @discardableResult
    public func schedule(
        every interval: Duration, jitter: Duration, _ body: @escaping () -> Void, file: StaticString = #fileID,
        line: UInt = #line
    ) -> Timer {
        let step = max(interval.clampedNanoseconds, 1)
        let most = min(max(jitter.clampedNanoseconds, 0), step)
        // `nil` until it has been started: then it does not fire.
        var timer: Timer?
        var random = LoopRandom(self)
        var place = LoopInstant.deadline(step, after: now.nanoseconds)
        func draw() {
            let delay = Int64.random(in: 0...most, using: &random)
            _ = timer?.reschedule(at: LoopInstant(nanoseconds: LoopInstant.deadline(delay, after: place)))
        }
        let ticking = schedule(
            every: interval,
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
