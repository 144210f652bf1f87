extension EventLoop {
    /// Calls `body` on this loop once, after `delay`.
    ///
    /// ```swift
    /// let timer = EventLoop.current.schedule(after: .seconds(5)) { print("five seconds later") }
    /// timer.cancel()
    /// ```
    ///
    /// The timer never fires early by the loop's clock. Timers with equal deadlines fire in the order of their start.
    ///
    /// Starting a timer usually reads no clock. The delay begins when the loop or your own `now` next reads it, at the
    /// latest after the current handler and the jobs then ready. In a long handler, compute the deadline from `now`
    /// first. A delay of zero or less means the next turn.
    @discardableResult
    public func schedule(
        after delay: Duration, _ body: consuming @escaping () -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Timer {
        assertOwner()
        // The slow path also records where the timer was started.
        if hasEnded || meter.isTiming { return startTimer(after: delay, ClosureJob(body, CallSite(file, line))) }
        return Timer(self, insert(.closure(consume body), after: delay))
    }

    /// Calls `body` on this loop once, at `deadline`.
    ///
    /// ```swift
    /// let loop = EventLoop.current
    /// loop.schedule(at: loop.now + .seconds(5)) { print("five seconds later") }
    /// ```
    ///
    /// A past deadline means the next turn.
    @discardableResult
    public func schedule(
        at deadline: LoopInstant, _ body: consuming @escaping () -> Void, file: StaticString = #fileID,
        line: UInt = #line
    ) -> Timer {
        assertOwner()
        if hasEnded || meter.isTiming { return startTimer(at: deadline, ClosureJob(body, CallSite(file, line))) }
        return Timer(self, timers.insert(deadline: notOverdue(deadline), interval: 0, .closure(consume body)))
    }

    /// Calls `body` on this loop every `interval`, first after one interval, until the timer is cancelled.
    ///
    /// ```swift
    /// EventLoop.current.schedule(every: .seconds(60)) { print("a minute") }.unref()
    /// EventLoop.current.schedule(every: .seconds(60), jitter: .seconds(10)) { print("a minute, more or less") }
    /// ```
    ///
    /// Ticks form a fixed grid, so a late tick does not shift later ones. After several missed ticks, one fires at
    /// once. Jitter delays each tick from its point by a uniformly distributed time, so processes that started together
    /// do not all call a server at once.
    /// - Parameters:
    ///   - interval: the time between two points, at least one nanosecond.
    ///   - jitter: the longest delay of a tick, at most `interval`.
    ///   - body: called on the loop's thread.
    @discardableResult
    public func schedule(
        every interval: Duration, jitter: Duration = .zero, _ body: @escaping () -> Void, file: StaticString = #fileID,
        line: UInt = #line
    ) -> Timer {
        assertOwner()
        let interval = max(interval.clampedNanoseconds, 1)
        if jitter > .zero {
            return startTimer(every: interval, jitter: min(jitter.clampedNanoseconds, interval), body, file, line)
        }
        let first = LoopInstant.deadline(interval, after: now.nanoseconds)
        return Timer(self, insert(ClosureJob(body, CallSite(file, line)), at: first, interval: interval))
    }

    package func startTimer(at deadline: LoopInstant, _ job: Job) -> Timer { Timer(self, addTimer(at: deadline, job)) }

    package func startTimer(after delay: Duration, _ job: Job) -> Timer { Timer(self, addTimer(after: delay, job)) }

    /// Starts a timer for a caller that keeps only the id. The timer does not keep the loop alive.
    package func addBackgroundTimer(at deadline: LoopInstant, _ body: @escaping () -> Void) -> UInt64 {
        let timer = schedule(at: deadline, body)
        timers.setReferenced(timer.id, false)
        return timer.id
    }

    /// Starts a timer for a caller that knows the loop and needs no handle.
    /// - Returns: the timer's id, for `removeTimer`.
    package func addTimer(after delay: Duration, _ job: Job) -> UInt64 {
        assertOwner()
        return hasReleasedAll ? discardTimer(job) : insert(.job(job), after: delay)
    }

    package func addTimer(at deadline: LoopInstant, _ job: Job) -> UInt64 {
        assertOwner()
        return insert(job, at: notOverdue(deadline))
    }

    @inline(__always)
    private func insert(_ action: consuming TimerHeap.Action, after delay: Duration) -> UInt64 {
        let id = timers.insert(delay: max(delay.clampedNanoseconds, 0), consume action)
        // A virtual clock may be advanced before the loop reads it.
        if clock.isVirtual || timers.isFullOfUndated { dateTimers() }
        return id
    }

    /// An ended loop discards the job. Returns the timer's id; if the loop has ended, no timer has it.
    @inline(__always)
    private func insert(_ job: Job, at deadline: Int64, interval: Int64 = 0) -> UInt64 {
        if hasReleasedAll { return discardTimer(job) }
        return timers.insert(deadline: deadline, interval: interval, .job(job))
    }

    @inline(never)
    private func discardTimer(_ job: Job) -> UInt64 {
        jobs.discard(.passRetained(job))
        return .max
    }

    /// - Returns: true if the timer had yet to fire.
    @inline(__always)
    package func removeTimer(_ id: UInt64) -> Bool {
        assertOwner()
        // In a variable, so the action is released once the heap is consistent.
        let action = timers.remove(id)
        return action != nil
    }

    /// A handle to a started timer; see `LoopHandle`.
    public struct Timer: LoopHandle {
        // The loop's number. Retaining the loop would cost four reference counts per start and cancellation. The number
        // of an ended loop finds nothing.
        private let loop: Int
        fileprivate let id: UInt64

        @inline(__always)
        init(_ loop: EventLoop, _ id: UInt64) {
            self.loop = loop.serial
            self.id = id
        }

        /// Cancels the timer and releases its closure at once. O(log n), no system call.
        /// - Returns: true if the timer had yet to fire.
        @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
        @discardableResult
        public func cancel() -> Bool { EventLoop.withLiving(loop, else: false) { $0.removeTimer(id) } }

        /// Moves the timer to another deadline. Costs a system call only if the timer becomes the earliest.
        /// - Returns: true if the timer had yet to fire; if false, nothing changes.
        @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
        @discardableResult
        public func reschedule(at deadline: LoopInstant) -> Bool {
            EventLoop.withLiving(loop, else: false) { $0.timers.move(id, to: $0.notOverdue(deadline)) }
        }

        /// True when the timer has yet to fire.
        public var isActive: Bool { EventLoop.withLiving(loop, else: false) { $0.timers.contains(id) } }

        /// Lets the loop end before this timer fires.
        @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
        public func unref() { EventLoop.withLiving(loop, else: ()) { $0.timers.setReferenced(id, false) } }

        /// Makes the timer keep the loop alive again.
        @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
        public func ref() { EventLoop.withLiving(loop, else: ()) { $0.timers.setReferenced(id, true) } }
    }
}
