/// The measurements that a loop takes of itself.
///
/// Invariant: used on the loop's thread only. `isTiming` is true exactly while handlers are timed;
/// `SharedLoopState.keepsOrigins` repeats it for other threads.
struct LoopMeter {
    /// Whether the time of each handler is measured: for `measuresHandlers`, or for a threshold.
    private(set) var isTiming = false
    /// See `EventLoop.measuresTurns`.
    var measuresTurns = false
    /// See `EventLoop.measuresHandlers`. `update` after a change.
    var measuresHandlers = false
    var counters = LoopMetrics()
    /// The reading of the clock at the end of the last measured turn, in nanoseconds, if the next turn follows at once;
    /// `unknown` otherwise. The next turn's wait begins then.
    var endOfTurn = Self.unknown
    var handlers = HandlerProfiler()
    /// The number of waiters that were visited on this thread to cancel, withdraw and sweep, and of links that were
    /// visited to list what is pending. For tests: an operation that is done thousands of times must not visit
    /// thousands of nodes each time.
    var nodesVisited = 0

    /// No moment.
    static var unknown: Int64 { .min }

    /// Called after a change of `measuresHandlers` or of the threshold.
    mutating func update() {
        let isOn = measuresHandlers || handlers.threshold != .max
        // The handler that switches the measurement on is not measured.
        if isOn && !isTiming { handlers.started = HandlerProfiler.unknown }
        isTiming = isOn
    }
}
