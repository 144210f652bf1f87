extension EventLoop {
    /// The current counters and gauges.
    public var metrics: LoopMetrics { metrics(countingJobs: .max) }

    /// - Parameter most: the limit for the count of ready jobs.
    package func metrics(countingJobs most: Int) -> LoopMetrics {
        var snapshot = meter.metrics
        for call in SystemCall.allCases where kernel[call] > 0 { snapshot.systemCalls[call] = kernel[call] }
        snapshot.readyJobs = jobs.count(atMost: most) + shared.waker.mailbox.count(atMost: most)
        // Handlers that the mailbox refuses while the loop ends make the count negative.
        snapshot.waitingHandlers = max(waitingHandlers, 0)
        snapshot.timers = timers.count
        snapshot.descriptors = poller.waiting
        snapshot.signalWatches = signals.count
        snapshot.holds = keepAlive.holds.count
        snapshot.externalWork = shared.work.externalWork.count
        return snapshot
    }

    /// The duration from which a handler counts as slow. `nil`, the default, measures nothing and costs nothing.
    ///
    /// Reports go to the log handler of the layer above, or else to standard error, at most ten per line and second.
    /// `metrics.slowHandlers` counts all slow handlers.
    ///
    /// With a threshold, each handler costs a clock reading, about 25 ns, and timers record the line that scheduled
    /// them.
    public var slowHandlerThreshold: Duration? {
        get { meter.threshold }
        set {
            assertOwner()
            meter.threshold = newValue
        }
    }

    /// The times that the loop measures; `.nothing` by default.
    public var measured: LoopMetrics.Measured {
        get { meter.measured }
        set { meter.measured = newValue }
    }

    package var nodesVisited: Int { meter.nodesVisited }

    /// Everything that keeps `run()` from returning, one line per reason, or `nothing`. Unreferenced watches and timers
    /// are marked. `metrics` has the counts.
    ///
    /// ```
    /// 2 timers, the nearest due in 29.9 seconds
    /// descriptor 7 for reading: Connection(127.0.0.1:54321)
    /// hold at App/Server.swift:12
    /// ```
    public var keepAliveReasons: String { keepAliveReport.description }

    /// The time until the next timer that keeps the loop alive; without such a timer, until the next timer.
    private var nearestTimer: Duration? {
        let now = now
        return timers.nearest.map { now.duration(to: LoopInstant(nanoseconds: $0)) }
    }

    package var keepAliveReport: KeepAliveReasons {
        assertOwner()
        return KeepAliveReasons(
            readyJobs: jobs.count + shared.waker.mailbox.count,
            undeliveredEvents: poller.undeliveredCount,
            timers: timers.referenced, unreferencedTimers: timers.count - timers.referenced,
            nearestTimer: nearestTimer,
            descriptors: poller.watched().map {
                .init(number: $0.fd, interest: $0.interest, isReferenced: $0.isReferenced, user: $0.handler.label)
            },
            signals: signals.handlers.map {
                .init(number: $0.signal, isReferenced: $0.isReferenced, callSite: $0.callSite)
            },
            holds: keepAlive.holds.elements.sorted { ($0.file, $0.line) < ($1.file, $1.line) },
            externalWork: shared.work.externalWork.count)
    }
}
