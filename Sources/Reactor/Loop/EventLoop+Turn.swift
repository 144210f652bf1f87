import CLinux
import ReactorLibc

extension EventLoop {
    /// The time that a turn may wait.
    public enum Wait: Equatable, Sendable {
        /// Waits until something happens, possibly forever.
        case wait
        /// Does not wait.
        case poll
        /// Waits like `wait`, but at most this long.
        case upTo(Duration)
    }

    /// Runs turns until nothing is left to wait for, or until `stop()`.
    ///
    /// ```swift
    /// EventLoop.current.schedule(after: .seconds(1)) { print("a second") }
    /// try EventLoop.current.run()                    // returns a second later
    /// ```
    ///
    /// Ready jobs, timers, watches, signal watches and holds keep the loop running unless unreferenced. A
    /// `ThreadPool`'s jobs do too while this loop waits for their results. The loop does not know about results from
    /// other threads, such as a callback that settles a promise: take a `hold()`, or `hang` on the promise. A `run()`
    /// nested in a handler ends under the same conditions.
    ///
    /// - Throws: `SystemError` if one of the loop's descriptors cannot be opened, or in a fork of the loop's process
    ///   (`EPERM` from `epoll_wait`). Inside a handler also `ELOOP`, if less than 256 KiB of the thread's stack
    ///   remains, or less than a quarter of a smaller stack.
    @available(*, noasync, message: "an async function must not block its thread; it has no loop of its own to drive")
    public func run() throws(SystemError) {
        meter.endOfTurn = LoopMeter.unknown
        while !mustReturn && (isAlive || runLateMainActorJobs()) {
            try turnAgain(isAlive ? .wait : .poll)
        }
        if (crossThreadWaiters.count > 0 || waitingHandlers > 0) && !mustReturn { reportLeftHandlers() }
        stopRequested = false
    }

    /// Runs turns until `condition` holds, until nothing is left that could make it hold, or until `stop()`.
    ///
    /// ```swift
    /// try EventLoop.current.run(until: { answers.count == 3 })
    /// ```
    ///
    /// Checks the condition before each turn, when the jobs that the previous turn made ready have run, unless they
    /// exceeded its budget.
    /// - Returns: true if the condition held in the end.
    /// - Throws: the same `SystemError`s as `run()`, and the error from `condition`.
    @available(*, noasync, message: "an async function must not block its thread; it has no loop of its own to drive")
    @discardableResult
    public func run(until condition: () throws -> Bool) throws -> Bool {
        defer { stopRequested = false }
        while try !condition() {
            guard !mustReturn && (isAlive || runLateMainActorJobs()) else { return false }
            try turn(isAlive ? .wait : .poll)
        }
        return true
    }

    /// Ends the innermost `run()` after its current turn.
    ///
    /// ```swift
    /// EventLoop.current.schedule(after: .seconds(5)) { EventLoop.current.stop() }
    /// ```
    ///
    /// If no run is in progress, the next one ends at once; further calls before that run change nothing. Later runs
    /// work normally.
    public func stop() {
        assertOwner()
        stopRequested = true
    }

    /// Runs one turn; see the steps at `EventLoop`.
    /// - Throws: the same `SystemError`s as `run()`.
    @available(*, noasync, message: "an async function must not block its thread; it has no loop of its own to drive")
    public func turn(_ wait: Wait = .wait) throws(SystemError) {
        meter.endOfTurn = LoopMeter.unknown
        try turnAgain(wait)
    }

    /// Runs a turn directly after another. Its wait begins when the other turn ends, which saves a clock reading.
    package func turnAgain(_ wait: Wait) throws(SystemError) {
        try checkWhetherItCanTurn()
        try drive(wait)
    }

    /// The caller has called `checkWhetherItCanTurn`.
    @inline(__always)
    func drive(_ wait: Wait) throws(SystemError) {
        assertOwner()
        let limit = moment(of: wait)
        try whileDriven { () throws(SystemError) in
            if meter.readsClock || jobs.isInterrupted {
                try takeInterruptedSteps(limit)
            } else if meter.measuresTurns {
                try takeMeasuredSteps(limit)
            } else {
                try takeSteps(limit, hasWorked: false, isMeasured: false)
            }
        }
    }

    /// Returns the latest end of a wait: `.max` for never, `.min` for no wait.
    @inline(__always)
    private func moment(of wait: Wait) -> Int64 {
        switch wait {
        case .wait: .max
        case .poll: .min
        case .upTo(let duration): LoopInstant.deadline(duration.clampedNanoseconds, after: now.nanoseconds)
        }
    }

    @inline(__always)
    func whileDriven<Value, Failure: Error>(_ body: () throws(Failure) -> Value) throws(Failure) -> Value {
        // A loop of `withLoop` and the surrounding loop may embed each other.
        let outer = clinux_get_current_loop()
        clinux_set_current_loop(Unmanaged.passUnretained(self).toOpaque())
        depth &+= 1
        if undrivenWork != nil { beginDriving() }
        defer {
            depth &-= 1
            clinux_set_current_loop(outer)
            // One of the loop's handlers has ended it; see `endInner`.
            if vanishes && depth == 0 { leaveForGood() }
            if undrivenWork != nil { ThreadLoop.noteHandlersIfNeeded() }
        }
        return try body()
    }

    @inline(never)
    private func takeMeasuredSteps(_ limit: Int64) throws(SystemError) {
        try takeSteps(limit, hasWorked: false, isMeasured: true)
    }

    // Rare code has separate functions: a thread that wakes has cold caches, and loads even code that it jumps over.

    /// Inlined, so that the first variant need not check `isMeasured`.
    @inline(__always)
    private func takeSteps(_ limit: Int64, hasWorked: Bool, isMeasured: Bool) throws(SystemError) {
        meter.counters.turns &+= 1
        if waker.isParked { unpark() }
        shared.waker.mailbox.take(into: &jobs.ready)
        // Posted jobs, and jobs beyond the previous turn's budget.
        let early = isMeasured && !jobs.ready.isEmpty ? now.nanoseconds : nil
        let worked = jobs.run() || hasWorked
        if let early { meter.noteTurn(since: early) }
        var polled = LoopMeter.unknown
        if poller.hasUndelivered {
            // A nested turn first delivers the events that the outer turn fetched. Newer events are polled before any
            // timer fires.
            poller.mayHaveMore = true
            timeOfPoll = LoopMeter.unknown
        } else {
            let mayBlock = !worked && !jobs.hasJobs && limit != .min
            polled = try poll(mayBlock: mayBlock, limit == .min ? .max : limit, isMeasured: isMeasured)
        }
        let began = !isMeasured || polled != LoopMeter.unknown ? polled : now.nanoseconds
        // Read before the events are delivered. A timer that becomes due during delivery waits for another poll,
        // because new input may cancel it.
        let due = dueTimers()
        let hasEvents = poller.hasUndelivered
        if hasEvents { deliverEvents() }
        if let due { try fire(due, afterEvents: hasEvents) }
        takeMail()
        _ = jobs.run()
        if isMeasured { meter.endOfTurn = meter.noteTurn(since: began) }
        if waker.isEmbedded && !jobs.hasJobs { try prepareForEmbedding() }
    }

    /// Runs a turn with measured handlers, or one inside a measured handler, an inline job or the `deinit` of a
    /// discarded object.
    @inline(never)
    private func takeInterruptedSteps(_ limit: Int64) throws(SystemError) {
        let isInsideInlineJob = jobs.isRunningInline
        let hasWorked = isInsideInlineJob && jobs.runInlineJobsEarly()
        let isInsideDiscard = jobs.interruptDiscarding()
        let interrupted = depth > 1 ? meter.interruptHandler() : nil
        defer {
            meter.resumeHandler(after: interrupted)
            if isInsideInlineJob { jobs.resumeInlineJob() }
            if isInsideDiscard { jobs.resumeDiscarding() }
        }
        let (previous, waited) = (meter.endOfTurn, meter.nanosecondsWaiting)
        try takeSteps(limit, hasWorked: hasWorked, isMeasured: meter.measuresTurns)
        if meter.probe != nil { meter.showTurn(after: previous, waited, polled: timeOfPoll) }
    }

    @inline(__always)
    func checkWhetherItCanTurn() throws(SystemError) {
        if isForked || hasEnded { try refuseTurn() }
        if depth > 0 { try checkStack() }
    }

    /// Throws if the loop has ended, or if the stack is nearly exhausted. Called before running ready jobs and waiting.
    /// (A fork may still run ready jobs.)
    @inline(never)
    package func checkWhetherItCanWait() throws(SystemError) {
        if !hasEnded && !clinux_stack_is_low() { return }
        if hasEnded { try refuseTurn() }
        try checkStack()
    }

    @inline(never)
    private func refuseTurn() throws(SystemError) {
        if hasEnded { throw SystemError(.epollWait, EBADF, detail: "the loop has ended") }
        throw SystemError(.epollWait, EPERM, detail: "the loop belongs to the process that this one was forked from")
    }

    /// Checks the stack before a turn or ready jobs inside a handler, since peers may determine the depth, for example
    /// when handlers hang. Throws early enough for the error to be handled.
    @inline(never)
    func checkStack() throws(SystemError) {
        guard clinux_stack_is_low() else { return }
        let detail =
            "the loop is driven inside too many of its own handlers, \(depth) turns deep: the stack is nearly used"
        throw SystemError(.epollWait, ELOOP, detail: detail)
    }

    /// Waits for other threads, for at most `limit` in real time even with a virtual clock. For a loop without timers.
    package func awaitOtherThreads(forRealAtMost limit: Duration) throws(SystemError) {
        guard clock.isVirtual else { return try turn(.upTo(limit)) }
        waker.realLimit = CInt(clamping: limit.clampedNanoseconds / 1_000_000 + 1)
        defer { waker.realLimit = -1 }
        try turn(.wait)
    }

    /// True when a waiting caller must return because the loop's thread must end.
    package var isStopping: Bool { shared.life.isAt(.stopping) }

    /// True when the innermost run, or every run, must return.
    var mustReturn: Bool { stopRequested || isStopping }
}
