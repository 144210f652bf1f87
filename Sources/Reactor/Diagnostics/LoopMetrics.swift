/// A loop's counters since its creation, and its current gauges. Reading them costs no system call.
///
/// `EventLoop.metrics` counts the ready jobs one by one; the rest takes a microsecond.
public struct LoopMetrics: Sendable {
    // MARK: Counters

    /// Turns of the loop.
    public internal(set) var turns = 0
    /// Jobs that have run, including the layer above's handlers.
    public internal(set) var jobs = 0
    /// Events that epoll has reported.
    public internal(set) var events = 0
    /// Timers that have fired.
    public internal(set) var timersFired = 0
    /// Times that another thread had to wake the loop.
    public internal(set) var wakeups = 0
    /// The loop thread's number of calls by system call, without zeros.
    public internal(set) var systemCalls: [SystemCall: Int] = [:]

    // MARK: Measurements, `nil` and missing in the text for Prometheus unless measured

    /// The time that the loop has waited, or that a virtual clock has jumped over. See `EventLoop.measured`.
    public internal(set) var timeWaiting: Duration?
    /// The longest stretch of a turn, before or after its poll, without polling. See `EventLoop.measured`.
    public internal(set) var longestTurn: Duration?
    /// The handler that blocked the loop longest. Measured by `EventLoop.measured = .handlers` or a
    /// `slowHandlerThreshold`.
    public internal(set) var longestHandler: SlowHandler?
    /// Handlers slower than `slowHandlerThreshold`.
    public internal(set) var slowHandlers: Int?

    // MARK: Gauges

    /// Ready jobs, including submitted ones.
    public internal(set) var readyJobs = 0
    /// Handlers waiting for a result.
    public internal(set) var waitingHandlers = 0
    /// Timers yet to fire.
    public internal(set) var timers = 0
    /// Watched descriptors.
    public internal(set) var descriptors = 0
    /// Signal watches.
    public internal(set) var signalWatches = 0
    /// Unreleased holds.
    public internal(set) var holds = 0
    /// Jobs of pools and async tasks that the loop waits for.
    public internal(set) var externalWork = 0

    /// The parts of its time that a loop measures.
    public enum Measured: Sendable {
        /// Nothing, at no cost.
        case nothing
        /// Every wait for `timeWaiting`, and every turn for `longestTurn`: three clock readings per turn, about 75 ns.
        case turns
        /// Also every handler, for `longestHandler`: another clock reading per handler, about 25 ns.
        case handlers
    }

    /// A counter that is unchanged as long as nothing was handled.
    var handled: Int { jobs &+ events &+ timersFired }
}
