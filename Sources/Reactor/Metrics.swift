/// What a loop has done since it was made. Reading it costs no system call.
public struct LoopMetrics: Sendable {
    /// Turns of the loop.
    public internal(set) var turns = 0
    /// Jobs and promise handlers that have run.
    public internal(set) var jobs = 0
    /// Events that epoll has reported.
    public internal(set) var events = 0
    /// Timers that have fired.
    public internal(set) var timersFired = 0
    /// How often another thread had to wake the loop.
    public internal(set) var wakeups = 0
    /// The longest time that one job or promise handler has held the loop; zero unless `measuresHandlers` is on. The
    /// callbacks of timers, watches and signals are not measured.
    public var longestHandler: Duration { .nanoseconds(longestHandlerNanoseconds) }
    var longestHandlerNanoseconds: Int64 = 0
    /// How often each system call was made by the loop's own thread; those never made are missing.
    public internal(set) var systemCalls: [SystemCall: Int] = [:]
}
