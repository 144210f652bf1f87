extension EventLoop {
    /// Calls `body` on this loop once, `delay` from now. Never early by the loop's clock; zero and less mean the next
    /// turn. Timers with equal deadlines fire in the order in which they were started.
    @discardableResult
    public func schedule(
        after delay: Duration, _ body: @escaping () -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Timer {
        startTimer(after: delay, job(body, file, line))
    }

    /// Calls `body` on this loop once, at `deadline` of the loop's clock; one that has passed means the next turn.
    @discardableResult
    public func schedule(
        at deadline: Instant, _ body: @escaping () -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Timer {
        startTimer(at: deadline, job(body, file, line))
    }

    /// Calls `body` on this loop every `interval`, first after one interval, until the timer is cancelled.
    ///
    /// The ticks stand on a grid: a late one does not shift those after it, and ticks that were missed altogether are
    /// skipped, but for one that is made up at once. An interval below a nanosecond counts as one.
    @discardableResult
    public func schedule(
        every interval: Duration, _ body: @escaping () -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Timer {
        startTimer(after: interval, repeats: true, job(body, file, line))
    }

    /// Starts a timer; see `schedule(after:_:)` for the public forms. Never before now: one that was due long ago
    /// must not overtake those that its own batch is firing.
    package func startTimer(at deadline: Instant, _ job: Job) -> Timer {
        assertOwner()
        if isClosed { return timerOfEndedLoop(job) }
        return Timer(self, timers.insert(deadline: max(deadline, now).nanoseconds, interval: 0, job: job))
    }

    package func startTimer(after delay: Duration, repeats: Bool = false, _ job: Job) -> Timer {
        assertOwner()
        if isClosed { return timerOfEndedLoop(job) }
        let delay = max(delay.clampedNanoseconds, repeats ? 1 : 0)
        let deadline = deadline(after: delay)
        return Timer(self, timers.insert(deadline: deadline, interval: repeats ? delay : 0, job: job))
    }

    /// The moment `delay` from now, for a timer. "Never" is for a delay that is endless itself: a sum that overflows is the
    /// last moment that a clock reaches.
    package func deadline(after delay: Duration) -> Instant {
        let nanoseconds = delay.clampedNanoseconds
        return Instant(nanoseconds: deadline(after: nanoseconds))
    }

    @inline(__always)
    private func deadline(after nanoseconds: Int64) -> Int64 {
        let sum = now.nanoseconds.addingSaturating(nanoseconds)
        return sum == .max && nanoseconds < .max ? Instant.last.nanoseconds : sum
    }

    /// Releases the job of a timer that is started when nothing would ever release it.
    @inline(never)
    private func timerOfEndedLoop(_ job: Job) -> Timer {
        discard(.passRetained(job))
        return Timer(self, .max)
    }

    /// A timer that has been started. Letting go of it does not end it; `cancel()` does.
    public struct Timer {
        private let loop: EventLoop
        private let id: UInt64

        init(_ loop: EventLoop, _ id: UInt64) {
            self.loop = loop
            self.id = id
        }

        /// Ends the timer and releases its closure at once. O(log n), no system call.
        /// - Returns: whether it was still to fire.
        @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
        @discardableResult
        public func cancel() -> Bool {
            loop.requireOwner()
            // Bound, so that the closure, and what it holds, goes after the queue is whole again.
            let job = loop.timers.remove(id)
            return job != nil
        }

        /// Moves the timer to another deadline, which costs no system call unless it becomes the earliest of all.
        /// - Returns: whether it was still to fire; if not, nothing has happened.
        @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
        @discardableResult
        public func reschedule(at deadline: Instant) -> Bool {
            loop.requireOwner()
            return loop.timers.move(id, to: max(deadline, loop.now).nanoseconds)
        }

        /// Whether it is still to fire.
        public var isPending: Bool {
            loop.assertOwner()
            return loop.timers.contains(id)
        }

        /// Lets the loop end although this timer is still to fire.
        @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
        public func unref() {
            loop.requireOwner()
            loop.timers.setReferenced(id, false)
        }

        /// Makes the timer keep the loop alive again.
        @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
        public func ref() {
            loop.requireOwner()
            loop.timers.setReferenced(id, true)
        }
    }
}

// MARK: In a turn

extension EventLoop {
    /// Which timers a turn fires: those that were due, and had been started, when it had asked the kernel.
    struct DueTimers {
        let moment: Int64
        let horizon: UInt64
    }

    /// The timers that are due, `nil` if none is.
    @inline(__always)
    func dueTimers() -> DueTimers? {
        let now = now.nanoseconds
        if armedDeadline <= now { armedDeadline = .max }
        guard let next = timers.nextDeadline, next <= now else { return nil }
        return DueTimers(moment: now, horizon: timers.horizon)
    }

    /// How long due timers wait for input that was there before them, in nanoseconds: handlers of it may take long.
    private static var mostDelay: Int64 { 50_000_000 }

    /// Fires what is due, after the events that have been delivered in this turn. A deadline must not win against an answer
    /// that the loop has not looked at: what the events have made ready runs first, and where the kernel may have more than it
    /// has reported, since one call reports 256 events and a signal may interrupt it, it is asked for the rest. That is done
    /// as often as it takes for all descriptors, and no longer than 50 ms.
    @inline(never)
    func fire(_ due: DueTimers, afterEvents hasDelivered: Bool) throws(SystemError) {
        var hasDelivered = hasDelivered
        var rounds = 0
        let most = poller.waiting / Poller.capacity + 1
        while true {
            if hasDelivered {
                takeMail()
                _ = drain()
            }
            if !poller.mayHaveMore || poller.descriptor < 0 || stopRequested || isStopping { break }
            if rounds > most { break }
            if rounds > 0 && clock.now.nanoseconds - due.moment > Self.mostDelay { break }
            rounds += 1
            try wait(0)
            // Twice in succession: the next turn asks again before it fires.
            if poller.wasInterrupted { return }
            hasDelivered = poller.hasUndelivered
            deliverEvents()
        }
        if isTiming { beginTiming() }
        while let job = timers.popDue(due.moment, startedBefore: due.horizon) {
            counters.timersFired += 1
            if isTiming { call(.timer, job.startedAt, job.subject) { job.run() } } else { job.run() }
        }
    }

    /// The earliest deadline of a timer, `nil` without one: how long another event loop that carries this one may
    /// wait. See `fileDescriptor`.
    public var nextDeadline: Instant? { timers.nextDeadline.map(Instant.init(nanoseconds:)) }
}
