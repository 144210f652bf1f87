extension EventLoop {
    /// Turns the undated timers' delays into deadlines.
    /// - Returns: the clock's reading.
    @inline(never)
    @discardableResult
    func dateTimers() -> Int64 {
        let now = clock.now.nanoseconds
        timers.date(at: now)
        return now
    }

    /// Returns `deadline`, but no earlier than the last due one: an overdue timer must not overtake the batch that is
    /// firing.
    @inline(__always)
    func notOverdue(_ deadline: LoopInstant) -> Int64 {
        max(deadline.nanoseconds, clock.isVirtual ? clock.now.nanoseconds : lastDueMoment)
    }

    /// The longest delay, in nanoseconds, of due timers by earlier input, since the input's handlers may run long.
    private static var mostDelay: Int64 { 50_000_000 }

    /// Fires the due timers after this turn's events.
    ///
    /// Unread input must win against a deadline, so the jobs from this turn's events run first. One poll reports at
    /// most 256 events, and a signal may interrupt it. So the loop polls for the remaining events, often enough for all
    /// descriptors, but for at most 50 ms.
    ///
    /// An earlier deadline must win against a later one. If both are due in one turn, the earlier timer's ready jobs
    /// run before the later one fires. When these jobs exceed their budget, the other timers wait for the next turn,
    /// which polls first. Each turn fires at least one timer.
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
            // A signal interrupted the poll; the next turn polls first.
            if poller.wasInterrupted { return }
            hasDelivered = poller.hasUndelivered
            if hasDelivered { deliverEvents() }
        }
        meter.beginTiming()
        if let action = timers.popDue(due) { call(action) }
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

    /// The earliest deadline of a timer, or `nil`. Another event loop that embeds this one must wait no longer; see
    /// `fileDescriptor`.
    public var nextDeadline: LoopInstant? {
        if timers.hasUndated { dateTimers() }
        return timers.nextDeadline.map(LoopInstant.init(nanoseconds:))
    }
}
