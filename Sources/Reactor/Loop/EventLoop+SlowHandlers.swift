extension EventLoop {
    /// The duration from which a handler is reported as slow, or `nil`, the default, to measure nothing, which costs
    /// nothing.
    ///
    /// Reports go to the log handler of the layer above, or to standard error. At most ten per second are sent; the
    /// next report then contains the number that were suppressed. All slow handlers are counted in
    /// `metrics.slowHandlers`.
    ///
    /// While the threshold is set, every handler costs a clock reading, about 25 ns, and jobs and timers record the
    /// line of the call that enqueues, submits or schedules them.
    public var slowHandlerThreshold: Duration? {
        get { meter.handlers.threshold == .max ? nil : .nanoseconds(meter.handlers.threshold) }
        set {
            assertOwner()
            meter.handlers.threshold = newValue.map { min($0.clampedNanoseconds, .max - 1) } ?? .max
            timingHasChanged()
        }
    }

    /// Whether to measure every handler, for `LoopMetrics.longestHandler`, and every wait, for
    /// `LoopMetrics.timeWaiting`. Costs one clock reading per handler, about 25 ns, and two per wait; off by default.
    public var measuresHandlers: Bool {
        get { meter.measuresHandlers }
        set {
            meter.measuresHandlers = newValue
            timingHasChanged()
        }
    }

    /// Whether to measure every wait, for `LoopMetrics.timeWaiting`, and every turn, for `LoopMetrics.longestTurn`.
    /// Costs three clock readings per turn, about 75 ns, however much happens in it; off by default.
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

    /// The next handler begins now.
    func beginTiming() { meter.handlers.started = clock.now.nanoseconds }

    /// A closure as a job, which records its call site if handlers are measured.
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
        // The measurement may have been switched off meanwhile.
        guard meter.isTiming && meter.handlers.started != HandlerProfiler.unknown else { return }
        guard let slow = meter.handlers.note(identity, endedAt: clock.now.nanoseconds) else { return }
        LoopEvent.send(.slowHandler(slow, subject: identity.subject))
        // The time of the report counts for no handler.
        beginTiming()
    }

    /// Calls `body` as a handler of this kind.
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
