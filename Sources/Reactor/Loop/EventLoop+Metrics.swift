extension EventLoop {
    /// The current counters and gauges.
    public var metrics: LoopMetrics {
        var snapshot = meter.counters
        for call in SystemCall.allCases where kernel[call] > 0 { snapshot.systemCalls[call] = kernel[call] }
        snapshot.longestHandler = .nanoseconds(meter.handlers.longest)
        snapshot.longestHandlerKind = meter.handlers.longestIdentity?.kind
        snapshot.longestHandlerOrigin = meter.handlers.longestIdentity?.origin
        snapshot.slowHandlers = meter.handlers.slow
        snapshot.measured = measurements
        snapshot.readyJobs = queues.ready.count + queues.endOfTurn.count + shared.waker.mailbox.count
        // Handlers that the mailbox has refused at the end take the count below zero.
        snapshot.waitingHandlers = max(waitingHandlers, 0)
        snapshot.timers = timers.count
        snapshot.descriptors = poller.waiting
        snapshot.signalWatches = signals.count
        snapshot.holds = keepAlive.holds.count
        snapshot.externalWork = shared.work.externalWork.count
        return snapshot
    }

    private var measurements: LoopMetrics.Measurements {
        var measured: LoopMetrics.Measurements = []
        if meter.measuresTurns || meter.measuresHandlers { measured.insert(.waits) }
        if meter.measuresTurns { measured.insert(.turns) }
        if meter.isTiming { measured.insert(.handlers) }
        if slowHandlerThreshold != nil { measured.insert(.slowHandlers) }
        return measured
    }
}
