/// A loop's counters since its creation, and its current gauges. Reading them costs no system call.
///
/// `EventLoop.metrics` takes 1 µs, plus the time to count the ready jobs one by one.
public struct LoopMetrics: Sendable {
    // MARK: Counters

    /// Turns of the loop.
    public internal(set) var turns = 0
    /// Jobs that have run, including handlers from the layer above.
    public internal(set) var jobs = 0
    /// Events that epoll has reported.
    public internal(set) var events = 0
    /// Timers that have fired.
    public internal(set) var timersFired = 0
    /// Times that another thread had to wake the loop.
    public internal(set) var wakeups = 0
    /// The loop thread's calls of each system call, without zeros.
    public internal(set) var systemCalls: [SystemCall: Int] = [:]

    // MARK: Measurements: `nil`, and absent from the Prometheus text, unless measured

    /// The time that the loop has waited, or that a virtual clock has skipped. See `EventLoop.measured`.
    public internal(set) var timeWaiting: Duration?
    /// The longest time without polling within a turn, before or after its poll. See `EventLoop.measured`.
    public internal(set) var longestTurn: Duration?
    /// The handler that blocked the loop longest. Needs `EventLoop.measured = .handlers` or a `slowHandlerThreshold`.
    public internal(set) var longestHandler: SlowHandler?
    /// Handlers slower than `slowHandlerThreshold`.
    public internal(set) var slowHandlers: Int?

    // MARK: Gauges

    /// Ready jobs, including submitted ones.
    public internal(set) var readyJobs = 0
    /// Handlers waiting for a result.
    public internal(set) var waitingHandlers = 0
    /// Timers that have yet to fire.
    public internal(set) var timers = 0
    /// Watched descriptors.
    public internal(set) var descriptors = 0
    /// Signal watches.
    public internal(set) var signalWatches = 0
    /// Holds that have not been released.
    public internal(set) var holds = 0
    /// Pool jobs and async tasks that the loop waits for.
    public internal(set) var externalWork = 0

    /// The times that a loop measures.
    public enum Measured: Sendable {
        /// Nothing, at no cost.
        case nothing
        /// Every wait for `timeWaiting`, and every turn for `longestTurn`: three clock readings per turn, about 75 ns.
        case turns
        /// Also every handler, for `longestHandler`: another clock reading per handler, about 25 ns.
        case handlers
    }

    /// A counter that changes whenever the loop handles something.
    var handled: Int { jobs &+ events &+ timersFired }
}
