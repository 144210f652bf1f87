/// What a loop measures of itself.
///
/// Invariant: used on the loop's thread only. `isTiming` is true exactly while handlers are timed; `SharedLoopState.keepsOrigins`
/// repeats it for other threads.
struct LoopMeter {
    /// Whether the time of each handler is taken: for `measuresHandlers`, or for a threshold.
    private(set) var isTiming = false
    /// See `EventLoop.measuresTurns`.
    var measuresTurns = false
    /// See `EventLoop.measuresHandlers`. `update` after a change.
    var measuresHandlers = false
    var counters = LoopMetrics()
    var handlers = HandlerProfiler()
    /// How many waiters have been looked at on this thread to cancel, withdraw and sweep, and how many links to list what is
    /// pending. For tests: what is done by the thousand must not look at thousands each time.
    var nodesVisited = 0

    /// After a change of `measuresHandlers` or of the threshold.
    mutating func update() {
        let isOn = measuresHandlers || handlers.threshold != .max
        // The handler that switches it on is not measured.
        if isOn && !isTiming { handlers.started = HandlerProfiler.unknown }
        isTiming = isOn
    }
}
