/// The counters of a loop since it was created, and its current gauges. Reading them costs no system call.
///
/// `EventLoop.metrics` counts the ready jobs one by one; the rest takes a microsecond.
public struct LoopMetrics: Sendable {
    // MARK: What it has done

    /// Turns of the loop.
    public internal(set) var turns = 0
    /// Jobs that have run, handlers of the layer above among them.
    public internal(set) var jobs = 0
    /// Events that epoll has reported.
    public internal(set) var events = 0
    /// Timers that have fired.
    public internal(set) var timersFired = 0
    /// The number of times that another thread had to wake the loop.
    public internal(set) var wakeups = 0
    /// The number of calls of each system call by the loop's own thread. Calls that were never made are not included.
    public internal(set) var systemCalls: [SystemCall: Int] = [:]
    /// The time that the loop has spent waiting; with a virtual clock, the time that the clock has jumped over. Zero
    /// unless `measuresTurns` or `measuresHandlers` is on.
    public var timeWaiting: Duration { .nanoseconds(nanosecondsWaiting) }
    var nanosecondsWaiting: Int64 = 0
    /// The longest stretch within one turn during which the loop did not poll its descriptors: before the poll, or
    /// after it. Zero unless `measuresTurns` is on.
    public var longestTurn: Duration { .nanoseconds(nanosecondsOfLongestTurn) }
    var nanosecondsOfLongestTurn: Int64 = 0

    // MARK: How long it was held

    /// The longest time that one handler has blocked the loop. Zero unless `measuresHandlers` is on, or a
    /// `slowHandlerThreshold` is set. Turns of the loop that the handler itself has run do not count.
    public internal(set) var longestHandler = Duration.zero
    /// The kind of the longest handler.
    public internal(set) var longestHandlerKind: HandlerKind?
    /// The call site of the longest handler, if it is known; see `SlowHandler.callSite`.
    public internal(set) var longestHandlerCallSite: CallSite?
    /// Handlers that were slower than the `slowHandlerThreshold`, reported or not.
    public internal(set) var slowHandlers = 0

    // MARK: What was measured

    /// The parts of a loop's time that are measured. By default nothing is, since it costs clock readings.
    public struct Measurements: OptionSet, Hashable, Sendable {
        /// One bit for each part.
        public let rawValue: UInt8

        /// Creates a set from its bits.
        /// - Parameter rawValue: one bit for each part.
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// The waits, for `timeWaiting`: with `measuresTurns` or `measuresHandlers`.
        public static let waits = Measurements(rawValue: 1)
        /// The turns, for `longestTurn`: with `measuresTurns`.
        public static let turns = Measurements(rawValue: 2)
        /// The handlers, for `longestHandler`: with `measuresHandlers` or a `slowHandlerThreshold`.
        public static let handlers = Measurements(rawValue: 4)
        /// Handlers beyond a limit, for `slowHandlers`: with a `slowHandlerThreshold`.
        public static let slowHandlers = Measurements(rawValue: 8)
    }

    /// The parts that were being measured when the metrics were read. The values of all other parts do not change; they
    /// are zero if they were never measured. `prometheusText` omits them, since they would look like those of a loop
    /// that never waits.
    public internal(set) var measured: Measurements = []

    // MARK: What it has before it, at this moment

    /// Jobs that are ready, including those that other threads have submitted.
    public internal(set) var readyJobs = 0
    /// Handlers that wait for a result that is still to come.
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
}
