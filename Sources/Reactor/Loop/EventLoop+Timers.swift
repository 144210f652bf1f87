// The timers of a turn; `Handles/Timer.swift` starts them.

extension EventLoop {
    /// Turns the delays of undated timers into deadlines.
    /// - Returns: the reading of the clock.
    @inline(never)
    @discardableResult
    func dateTimers() -> Int64 {
        let now = clock.now.nanoseconds
        timers.date(at: now)
        return now
    }

    /// The deadline of a timer, never before the last one that was due: a timer that was due long ago must not overtake
    /// the timers that its own batch is firing.
    @inline(__always)
    func notOverdue(_ deadline: LoopInstant) -> Int64 {
        max(deadline.nanoseconds, clock.isVirtual ? clock.now.nanoseconds : lastDueMoment)
    }

    /// The longest time in nanoseconds that due timers wait for input that arrived before them. Handlers of that input
    /// may run long.
    private static var mostDelay: Int64 { 50_000_000 }

    /// Fires the due timers, after the events that this turn has delivered.
    ///
    /// A deadline must not win against input that the loop has not read yet. Jobs that the events have made ready
    /// therefore run first. The kernel may also have more events than it has reported: one call reports at most 256
    /// events, and a signal may interrupt the call. The loop then polls for the rest, as often as it takes for all
    /// descriptors, but no longer than 50 ms.
    ///
    /// Nor must a later deadline win against an earlier one. If the loop is late, both are due in one turn: jobs that
    /// the earlier timer has made ready run before the later one fires. When they exceed their budget, the other timers
    /// are left to the next turn, which polls first; so each turn fires one timer at least, whatever the jobs do.
    @inline(never)
    func fire(_ due: TimerHeap.Due, afterEvents hasDelivered: Bool) throws(SystemError) {
        var hasDelivered = hasDelivered
        var rounds = 0
        let most = poller.waiting / Poller.capacity + 1
        while true {
            if hasDelivered {
                takeMail()
                _ = jobs.run()
            }
            if !poller.mayHaveMore || poller.descriptor < 0 || mustReturn { break }
            if rounds > most { break }
            if rounds > 0 && clock.now.nanoseconds - due.moment > Self.mostDelay { break }
            rounds += 1
            try wait(0)
            // Interrupted: the next turn polls again before it fires timers.
            if poller.wasInterrupted { return }
            hasDelivered = poller.hasUndelivered
            if hasDelivered { deliverEvents() }
        }
        meter.beginTiming()
        if let action = timers.popDue(due) { call(action) }
        // In most turns no other timer is due.
        if timers.hasMore(of: due) { fireOthers(due) }
    }

    @inline(never)
    private func fireOthers(_ due: TimerHeap.Due) {
        var budget = LoopJobs.BudgetBetweenTimers(since: due.moment)
        while jobs.ready.isEmpty || jobs.runBetweenTimers(&budget), let action = timers.popDue(due) { call(action) }
    }

    @inline(__always)
    private func call(_ action: TimerHeap.Action) {
        meter.counters.timersFired += 1
        switch action {
        case .closure(let body): meter.call(.timer, nil, nil, body)
        case .job(let job): meter.call(.timer, job.handlerCallSite, job.subject) { job.run() }
        }
    }

    /// The earliest deadline of a timer, or `nil` without a timer. Another event loop that embeds this one waits no
    /// longer than that; see `fileDescriptor`.
    public var nextDeadline: LoopInstant? {
        if timers.hasUndated { dateTimers() }
        return timers.nextDeadline.map(LoopInstant.init(nanoseconds:))
    }
}
