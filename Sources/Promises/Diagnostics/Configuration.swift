import CLinux
import Glibc
import Reactor
import Synchronization

/// The settings of the library, for the whole process. Any thread; read when an operator is called.
public let conf = Configuration()

/// See `conf`.
public final class Configuration: Sendable {
    private let policy = Atomic<UInt8>(CatchPolicy.allErrorsExceptCancellation.rawValue)
    private let abandonment = Atomic<UInt8>(AbandonPolicy.reject.rawValue)
    private let handler = Mutex(Handler { LoopEvent.print($0.description) })

    // A struct, because a mutex of a closure by itself wraps the closure once more with each reading, and each call then
    // goes through all of the wrappings.
    private struct Handler: Sendable {
        let call: @Sendable (LogEvent) -> Void

        init(_ call: @escaping @Sendable (LogEvent) -> Void) { self.call = call }
    }

    private let limited = LimitedReports<LogKey> { key, count in
        conf.logHandler(.suppressed(count, key?.kind, at: key?.origin))
    }

    init() {
        atexit { conf.limited.tellAll() }
        let handler = LoopEvent.Handler { report in
            switch report {
            case .undelivered(let count): conf.log(.undeliveredHandlers(count))
            case .slowHandler(let handler, let subject):
                conf.log(
                    .slowHandler(handler, (subject as? TraceRecord).map { TraceRegistry.provenance($0, origin: nil) }))
            case .taskOnEndedLoop: conf.log(.taskOnEndedLoop)
            case .undriven(let origin): conf.log(.undrivenLoop(at: origin))
            case .loopFailed(let name, let error): conf.log(.loopFailed(name, error))
            case .watchPaused(let error): conf.log(.watchPaused(error))
            case .staleWatch(let fd, let origin): conf.log(.staleWatch(descriptor: fd, at: origin))
            }
        }
        LoopEvent.handler.withLock { $0 = handler }
    }

    /// The policy of `catch` and `recover` where none is given.
    public var catchPolicy: CatchPolicy {
        get { CatchPolicy(rawValue: policy.load(ordering: .relaxed))! }
        set { policy.store(newValue.rawValue, ordering: .relaxed) }
    }

    /// What happens to a promise whose last resolver goes without settling it.
    public var abandoned: AbandonPolicy {
        get { AbandonPolicy(rawValue: abandonment.load(ordering: .relaxed))! }
        set { abandonment.store(newValue.rawValue, ordering: .relaxed) }
    }

    /// Whether operators record their call sites, for reports, debug descriptions and `EventLoop.pendingPromises`; see
    /// `Trace`. Off by default, and then of no cost; on, each promise costs some 200 bytes and half a microsecond more. It
    /// concerns the promises that are made from then on.
    public var trace: Bool {
        get { clinux_is_tracing() }
        set { clinux_set_tracing(newValue) }
    }

    /// How many events of a kind and a source line reach the log handler in a stretch of time; ten in a second unless set,
    /// and `nil` for all. It holds for every handler, since many events are caused by peers, and whoever handles them
    /// does so on a loop's thread.
    ///
    /// Nothing is lost silently: of the events that did not pass the handler is given a `LogEvent.suppressed`, which says how
    /// many they were; when the period is over and the next event of that kind and line comes, or a little later on a thread of
    /// the library's, or when the process ends by exit(3). Events with errors of different types, or different codes of the
    /// kernel, count apart.
    public var logLimit: LogLimit? {
        get { limited.limit.map { LogLimit($0) } }
        set { limited.limit = newValue?.reportLimit }
    }

    /// Receives what the library has to report, within `logLimit`. Called on whichever thread it happens on, and must be
    /// quick.
    ///
    /// By default each event is one line on standard error, which never waits: a line that standard error does not take at
    /// once, because it is a full pipe that no process reads, is dropped, and the next that it takes says how many were.
    public var logHandler: @Sendable (LogEvent) -> Void {
        get { handler.withLock { $0 }.call }
        set {
            let new = Handler(newValue)
            // The old one goes outside the lock: what it captured may have something to log.
            let old = handler.withLock { handler in
                defer { handler = new }
                return handler
            }
            withExtendedLifetime(old) {}
        }
    }

    func log(_ event: LogEvent) {
        if limited.admit(event.key) { logHandler(event) }
    }
}

/// See `Configuration.abandoned`.
public enum AbandonPolicy: UInt8, Sendable {
    /// It is logged, and rejected with `PromiseError.abandoned`. A guarantee can only be logged. The default.
    case reject
    /// It is logged, and stays pending forever, as in PromiseKit. What waits for it is released, a `timeout` among it. What
    /// was to be settled by a loop that has ended is rejected with `PromiseError.loopEnded` all the same.
    case log
    /// The program traps, naming the line that made the promise.
    case trap
}
