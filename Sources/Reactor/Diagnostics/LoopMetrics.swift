/// What a loop has done since it was made, and what it has before it. Reading it costs no system call.
///
/// `EventLoop.metrics` counts jobs that are ready one by one; the rest takes a microsecond.
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
    /// How often another thread had to wake the loop.
    public internal(set) var wakeups = 0
    /// How often each system call was made by the loop's own thread; those never made are missing.
    public internal(set) var systemCalls: [SystemCall: Int] = [:]
    /// The time that the loop has waited for something to happen; of a virtual clock, the time that it has jumped over.
    /// Zero unless `measuresTurns` or `measuresHandlers` is on.
    public var timeWaiting: Duration { .nanoseconds(nanosecondsWaiting) }
    var nanosecondsWaiting: Int64 = 0
    /// The longest time that the loop has not looked at its descriptors: in the part of a turn before it does, and in that after. Zero
    /// unless `measuresTurns` is on.
    public var longestTurn: Duration { .nanoseconds(nanosecondsOfLongestTurn) }
    var nanosecondsOfLongestTurn: Int64 = 0

    // MARK: How long it was held

    /// The longest time that one handler has held the loop; zero unless `measuresHandlers` is on, or a
    /// `slowHandlerThreshold` is set. Turns that the handler itself has made of the loop do not count.
    public internal(set) var longestHandler = Duration.zero
    /// What that was.
    public internal(set) var longestHandlerKind: HandlerKind?
    /// Where that was started, as far as it is known; see `SlowHandler.origin`.
    public internal(set) var longestHandlerOrigin: CallSite?
    /// Handlers that were slower than the `slowHandlerThreshold`, reported or not.
    public internal(set) var slowHandlers = 0

    // MARK: What was measured

    /// What of a loop's time is taken. Nothing is by default, since it costs readings of the clock.
    public struct Measurements: OptionSet, Hashable, Sendable {
        /// One bit for each.
        public let rawValue: UInt8

        /// Those of a raw value.
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// Its waits, for `timeWaiting`: with `measuresTurns` or `measuresHandlers`.
        public static let waits = Measurements(rawValue: 1)
        /// Its turns, for `longestTurn`: with `measuresTurns`.
        public static let turns = Measurements(rawValue: 2)
        /// Its handlers, for `longestHandler`: with `measuresHandlers` or a `slowHandlerThreshold`.
        public static let handlers = Measurements(rawValue: 4)
        /// Handlers beyond a limit, for `slowHandlers`: with a `slowHandlerThreshold`.
        public static let slowHandlers = Measurements(rawValue: 8)
    }

    /// What was being measured at this moment. The numbers of the rest stand still, at zero if it was never measured, and
    /// are left out of `prometheusText`: there they would look like a loop that never waits.
    public internal(set) var measured: Measurements = []

    // MARK: What it has before it, at this moment

    /// Jobs that are ready, also those that other threads have submitted.
    public internal(set) var readyJobs = 0
    /// Handlers that wait for a result that is still to come.
    public internal(set) var waitingHandlers = 0
    /// Timers that are to fire.
    public internal(set) var timers = 0
    /// Descriptors that are waited for.
    public internal(set) var descriptors = 0
    /// Signal watches.
    public internal(set) var signalWatches = 0
    /// Holds that have not been released.
    public internal(set) var holds = 0
    /// Jobs of a pool, and async tasks, that the loop waits for.
    public internal(set) var externalWork = 0
}
