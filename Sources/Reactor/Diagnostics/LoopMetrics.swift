/// The counters of a loop since it was created, and its current gauges. Reading them costs no system call.
///
/// `EventLoop.metrics` counts the ready jobs one by one; everything else takes a microsecond.
public struct LoopMetrics: Sendable {
    // MARK: What it has done

    /// Turns of the loop.
    public internal(set) var turns = 0
    /// Jobs that have run, including handlers of the layer above.
    public internal(set) var jobs = 0
    /// Events that epoll has reported.
    public internal(set) var events = 0
    /// Timers that have fired.
    public internal(set) var timersFired = 0
    /// How often another thread had to wake the loop.
    public internal(set) var wakeups = 0
    /// The number of calls of each system call by the loop's own thread. Calls that were never made are not included.
    public internal(set) var systemCalls: [SystemCall: Int] = [:]

    // MARK: What was measured, if it was: `nil` otherwise, and then it is not in the text for Prometheus

    /// The time that the loop has spent waiting; with a virtual clock, the time that the clock has jumped over. See
    /// `EventLoop.measured`.
    public internal(set) var timeWaiting: Duration?
    /// The longest stretch within one turn during which the loop did not poll its descriptors: before the poll, or
    /// after it. See `EventLoop.measured`.
    public internal(set) var longestTurn: Duration?
    /// The handler that has blocked the loop for the longest time. Measured with `EventLoop.measured` at `.handlers`,
    /// or with a `slowHandlerThreshold`.
    public internal(set) var longestHandler: SlowHandler?
    /// Handlers that were slower than the `slowHandlerThreshold`.
    public internal(set) var slowHandlers: Int?

    // MARK: What it has before it, at this moment

    /// Jobs that are ready, including those that other threads have submitted.
    public internal(set) var readyJobs = 0
    /// Handlers that wait for a result.
    public internal(set) var waitingHandlers = 0
    /// Timers that have still to fire.
    public internal(set) var timers = 0
    /// Watched descriptors.
    public internal(set) var descriptors = 0
    /// Signal watches.
    public internal(set) var signalWatches = 0
    /// Holds that have not been released.
    public internal(set) var holds = 0
    /// Jobs of pools and async tasks that the loop waits for.
    public internal(set) var externalWork = 0

    /// The parts of its own time that a loop measures.
    public enum Measured: Sendable {
        /// Nothing, at no cost.
        case nothing
        /// Every wait, for `timeWaiting`, and every turn, for `longestTurn`: three clock readings
        /// per turn, about 75 ns, however much happens in it.
        case turns
        /// The turns, and every handler, for `longestHandler`: one more clock reading per handler, about 25 ns.
        case handlers
    }

    /// A counter of everything handled: equal at two moments if nothing happened in between.
    var handled: Int { jobs &+ events &+ timersFired }
}
