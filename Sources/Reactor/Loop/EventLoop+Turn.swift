import CLinux
import ReactorLibc

// How a loop is driven: runs, and the turns of which they consist.

extension EventLoop {
    /// How long a turn may wait.
    public enum Wait: Equatable, Sendable {
        /// Waits until something happens, forever if necessary.
        case wait
        /// Does not wait.
        case poll
        /// Waits as `wait` does, but no longer than this duration.
        case upTo(Duration)
    }

    /// Runs turns until nothing is left to wait for, or until `stop()`.
    ///
    /// ```swift
    /// EventLoop.current.schedule(after: .seconds(1)) { print("a second") }
    /// try EventLoop.current.run()                    // returns a second later
    /// ```
    ///
    /// Ready jobs, timers, watches, signal watches and holds keep the loop running, unless they are unreferenced; so do
    /// jobs of a `ThreadPool` whose results this loop waits for. The loop does not know of other results that a thread
    /// is to deliver, such as a callback that settles a promise: take a `hold()`, or `hang` on the promise. `run()` may
    /// be called in a handler; such a nested run ends under the same conditions.
    ///
    /// - Throws: `SystemError` if a descriptor of the loop cannot be opened, or if this process is a fork of the one
    ///   that created the loop (`EPERM` of `epoll_wait`); inside a handler also if less than 256 KiB of the thread's
    ///   stack remains, or less than a quarter of it if that is less (`ELOOP`).
    @available(*, noasync, message: "an async function must not block its thread; it has no loop of its own to drive")
    public func run() throws(SystemError) {
        meter.endOfTurn = LoopMeter.unknown
        while !mustReturn && (isAlive || runLateMainActorJobs()) {
            try turnAgain(isAlive ? .wait : .poll)
        }
        if (outsideWaiters.count > 0 || waitingHandlers > 0) && !mustReturn { reportLeftHandlers() }
        stopRequested = false
    }

    /// Runs turns until `condition` holds, until nothing is left that could make it hold, or until `stop()`.
    ///
    /// ```swift
    /// try EventLoop.current.run(until: { answers.count == 3 })
    /// ```
    ///
    /// The condition is checked before each turn. Jobs that the previous turn made ready have run by then, unless they
    /// exceeded the turn's budget.
    /// - Returns: whether the condition held in the end.
    /// - Throws: `SystemError` as `run()`, and the errors of `condition`.
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
    /// If none is running, the next one ends at once. Further calls before that have no effect. Afterwards the loop can
    /// run again.
    public func stop() {
        assertOwner()
        stopRequested = true
    }

    /// Runs one turn; see the description of the type.
    /// - Throws: `SystemError` as `run()`.
    @available(*, noasync, message: "an async function must not block its thread; it has no loop of its own to drive")
    public func turn(_ wait: Wait = .wait) throws(SystemError) {
        meter.endOfTurn = LoopMeter.unknown
        try turnAgain(wait)
    }

    /// A turn that follows another one at once: its wait begins when that one ended, which saves a clock reading if
    /// turns are measured.
    package func turnAgain(_ wait: Wait) throws(SystemError) {
        try checkWhetherItCanTurn()
        try drive(wait)
    }

    /// A turn for a caller that has called `checkWhetherItCanTurn`.
    @inline(__always)
    func drive(_ wait: Wait) throws(SystemError) {
        assertOwner()
        let limit = moment(of: wait)
        try whileDriven { () throws(SystemError) in
            if meter.isTiming || jobs.isInterrupted {
                try takeInterruptedSteps(limit)
            } else if meter.measuresTurns {
                try takeMeasuredSteps(limit)
            } else {
                try takeSteps(limit, hasWorked: false, isMeasured: false)
            }
        }
    }

    /// The latest moment at which a wait must end: `.max` for never, `.min` if the turn must not wait.
    @inline(__always)
    private func moment(of wait: Wait) -> Int64 {
        switch wait {
        case .wait: .max
        case .poll: .min
        case .upTo(let duration): LoopInstant.deadline(duration.clampedNanoseconds, after: now.nanoseconds)
        }
    }

    /// Runs `body` as if in a turn.
    @inline(__always)
    func whileDriven<Value, Failure: Error>(_ body: () throws(Failure) -> Value) throws(Failure) -> Value {
        // A loop of `withLoop` may be embedded in the surrounding loop, or the other way round.
        let outer = clinux_get_current_loop()
        clinux_set_current_loop(Unmanaged.passUnretained(self).toOpaque())
        depth &+= 1
        if unrunWork != nil { beginDriving() }
        defer {
            depth &-= 1
            clinux_set_current_loop(outer)
            // One of its handlers has ended it: see `endInner`.
            if vanishes && depth == 0 { leaveForGood() }
            if unrunWork != nil { ThreadLoop.noteHandlersIfNeeded() }
        }
        return try body()
    }

    @inline(never)
    private func takeMeasuredSteps(_ limit: Int64) throws(SystemError) {
        try takeSteps(limit, hasWorked: false, isMeasured: true)
    }

    // Rare code is in separate functions, here and in the callees of a turn. A thread that wakes up has no code in the
    // processor's cache and waits for each line of it, even for code that it jumps over.

    /// The steps of a turn. Inlined into the variants, so that the first one need not check `isMeasured`.
    @inline(__always)
    private func takeSteps(_ limit: Int64, hasWorked: Bool, isMeasured: Bool) throws(SystemError) {
        meter.counters.turns &+= 1
        if waker.isParked { unpark() }
        shared.waker.mailbox.take(into: &jobs.ready)
        // Mail, and jobs that exceeded the budget of the previous turn.
        let early = isMeasured && !jobs.ready.isEmpty ? now.nanoseconds : nil
        let worked = jobs.run() || hasWorked
        if let early { meter.noteTurn(since: early) }
        var polled = LoopMeter.unknown
        if poller.hasUndelivered {
            // A nested turn first delivers the events that the outer turn has fetched. Events that have arrived since
            // then are polled before any timer fires.
            poller.mayHaveMore = true
            timeOfPoll = LoopMeter.unknown
        } else {
            let mayBlock = !worked && !jobs.hasJobs && limit != .min
            polled = try poll(mayBlock: mayBlock, limit == .min ? .max : limit, isMeasured: isMeasured)
        }
        let began = !isMeasured || polled != LoopMeter.unknown ? polled : now.nanoseconds
        // Determined before the events are delivered: a timer that becomes due meanwhile waits until the kernel has
        // been polled once more. Input that has arrived by then may cancel the timer.
        let due = dueTimers()
        let hasEvents = poller.hasUndelivered
        if hasEvents { deliverEvents() }
        if let due { try fire(due, afterEvents: hasEvents) }
        takeMail()
        _ = jobs.run()
        if isMeasured { meter.endOfTurn = meter.noteTurn(since: began) }
        if waker.isEmbedded && !jobs.hasJobs { try prepareForEmbedding() }
    }

    /// A turn with measured handlers, or inside a measured handler, an inline job or the `deinit` of a discarded object.
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

    /// For a caller that is about to run ready jobs and to wait: throws if the loop has ended, which runs nothing any
    /// more, or if the stack is nearly used up. (A fork of the process may run what is ready.)
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

    /// Checks the stack before a turn, or ready jobs, inside a handler. Each level takes stack, and peers may determine
    /// the depth, for example if the handlers of a server hang. Too deep a nesting throws while there is still stack to
    /// handle the error.
    @inline(never)
    func checkStack() throws(SystemError) {
        guard clinux_stack_is_low() else { return }
        let detail =
            "the loop is driven inside too many of its own handlers, \(depth) turns deep: the stack is nearly used"
        throw SystemError(.epollWait, ELOOP, detail: detail)
    }

    /// Runs a turn that waits for other threads, for `limit` at most by the real clock, even if the loop's clock is
    /// virtual. For a loop that has no timer.
    package func awaitOtherThreads(forRealAtMost limit: Duration) throws(SystemError) {
        guard clock.isVirtual else { return try turn(.upTo(limit)) }
        waker.realLimit = CInt(clamping: limit.clampedNanoseconds / 1_000_000 + 1)
        defer { waker.realLimit = -1 }
        try turn(.wait)
    }

    /// Whether a waiting caller must return because the loop's thread is to end.
    package var isStopping: Bool { shared.life.isAt(.stopping) }

    /// Whether a run must return: the innermost one, or all.
    var mustReturn: Bool { stopRequested || isStopping }
}
