extension EventLoop {
    /// A handler that holds the loop for this long or longer is reported through the log handler of the layer above, or on
    /// standard error; ten a second at most, and the next then tells how many were left out. All are counted in
    /// `metrics.slowHandlers`. `nil`, the default: nothing is measured, and that costs nothing.
    ///
    /// While it is set every handler costs a reading of the clock, about 25 ns, and what is enqueued, submitted or
    /// scheduled remembers the line of the call.
    public var slowHandlerThreshold: Duration? {
        get { meter.handlers.threshold == .max ? nil : .nanoseconds(meter.handlers.threshold) }
        set {
            assertOwner()
            meter.handlers.threshold = newValue.map { min($0.clampedNanoseconds, .max - 1) } ?? .max
            timingHasChanged()
        }
    }

    /// Whether to take the time of every handler, for `Metrics.longestHandler`, and of every wait, for
    /// `Metrics.timeWaiting`. One reading of the clock a handler, about 25 ns, and two a wait; off by default.
    public var measuresHandlers: Bool {
        get { meter.measuresHandlers }
        set {
            meter.measuresHandlers = newValue
            timingHasChanged()
        }
    }

    /// Whether to take the time of every wait, for `Metrics.timeWaiting`, and of every turn, for `Metrics.longestTurn`.
    /// Three readings of the clock a turn, about 75 ns, however much happens in it; off by default.
    public var measuresTurns: Bool {
        get { meter.measuresTurns }
        set { meter.measuresTurns = newValue }
    }

    /// See `LoopMeter.nodesVisited`.
    package var nodesVisited: Int { meter.nodesVisited }

    private func timingHasChanged() {
        meter.update()
        shared.keepsOrigins.store(meter.isTiming, ordering: .relaxed)
    }

    /// What is called from now on begins now.
    func beginTiming() { meter.handlers.started = clock.now.nanoseconds }

    /// A closure as a job, which knows where it comes from if anybody wants to know.
    func job(_ body: @escaping () -> Void, _ file: StaticString, _ line: UInt) -> Job {
        meter.isTiming ? LocatedJob(body, CallSite(file, line)) : ClosureJob(body)
    }

    @inline(never)
    func runTimed(_ job: Unmanaged<Job>) {
        if meter.handlers.started == HandlerProfiler.unknown { beginTiming() }
        let identity = job._withUnsafeGuaranteedRef {
            HandlerInfo(kind: $0.kind, origin: $0.startedAt, subject: $0.subject)
        }
        job._withUnsafeGuaranteedRef { $0.runAndRelease() }
        handlerHasEnded(identity)
    }

    func handlerHasEnded(_ identity: HandlerInfo) {
        // It may have been switched off meanwhile.
        guard meter.isTiming && meter.handlers.started != HandlerProfiler.unknown else { return }
        guard let slow = meter.handlers.note(identity, endedAt: clock.now.nanoseconds) else { return }
        LoopEvent.send(.slowHandler(slow, subject: identity.subject))
        // The report is nobody's time.
        beginTiming()
    }

    /// Calls `body` as a handler of that kind.
    func call(
        _ kind: HandlerKind, _ origin: @autoclosure () -> CallSite?,
        _ subject: @autoclosure () -> (any AnyObject & Sendable)? = nil, _ body: () -> Void
    ) {
        guard meter.isTiming else { return body() }
        if meter.handlers.started == HandlerProfiler.unknown { beginTiming() }
        let identity = HandlerInfo(kind: kind, origin: origin(), subject: subject())
        body()
        handlerHasEnded(identity)
    }
}
