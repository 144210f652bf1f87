import CLinux
import ReactorLibc
import Reactor
import Synchronization

/// The library's settings for the whole process, on any thread. An operator reads them when it is called.
///
/// ```swift
/// conf.logHandler = { event in log.notice("\(event)") }
/// ```
public let conf = Configuration()

/// The settings of this process; `conf` is the only instance.
public final class Configuration: Sendable {
    private let policy = Atomic<UInt8>(CatchPolicy.allErrorsExceptCancellation.rawValue)
    private let handler = LockedValue.ofProcess(ReportHandler<LogEvent> { LoopEvent.print($0.description) })

    /// Called before the limit applies.
    private let observer = LockedValue.ofProcess(ReportHandler<LogEvent>?.none)

    private let limited = LimitedReports<LogKey> { key, count in
        conf.logHandler(.suppressed(count, key?.kind, at: key?.callSite))
    }

    init() {
        atexit { conf.limited.reportAllSuppressed() }
        let handler = ReportHandler<LoopEvent> { report in
            switch report {
            case .leftHandlers(let count, let callSite): conf.log(.loopLeftHandlers(count, at: callSite))
            case .undelivered(let count): conf.log(.undeliveredHandlers(count))
            case .slowHandler(let handler, let subject):
                conf.log(
                    .slowHandler(handler, (subject as? TraceRecord).map { TraceRegistry.provenance($0, callSite: nil) })
                )
            case .taskOnEndedLoop: conf.log(.taskOnEndedLoop)
            case .undrivenWork(let callSite): conf.log(.loopNotRunning(at: callSite))
            case .loopFailed(let name, let error): conf.log(.loopFailed(name, error))
            case .watchPaused(let error): conf.log(.watchPaused(error))
            case .threadShortage(let error): conf.log(.threadShortage(error))
            case .staleWatch(let fd, let callSite): conf.log(.staleWatch(descriptor: fd, at: callSite))
            }
        }
        LoopEvent.handler.withLock { $0 = handler }
    }

    /// The policy for a `catch` or `recover` that names none.
    public var catchPolicy: CatchPolicy {
        get { CatchPolicy(rawValue: policy.load(ordering: .relaxed))! }
        set { policy.store(newValue.rawValue, ordering: .relaxed) }
    }

    /// True when operators record their call sites, for reports, debug descriptions and `EventLoop.pendingPromises`;
    /// see `Trace`. Off by default, at no cost. When on, costs about 200 bytes and half a microsecond per promise made
    /// later.
    public var trace: Bool {
        get { clinux_is_tracing() }
        set { clinux_set_tracing(newValue) }
    }

    /// The number of events per kind, source line and period that reach any log handler. A period begins with the first
    /// event that passes. The default is ten per second; `nil` means no limit. Peers can cause many events, and the
    /// handler runs on a loop's thread.
    ///
    /// The handler receives the number of suppressed events as a `LogEvent.suppressed` after the period: with the
    /// next event of that kind and line, a little later on a library thread, or at exit(3). Errors with different types
    /// or kernel codes are counted separately. At least one event per nanosecond passes.
    public var logLimit: (burst: Int, period: Duration)? {
        get { limited.limit.map { ($0.burst, .nanoseconds($0.period)) } }
        set { limited.limit = newValue.map { ReportLimit(burst: $0.burst, period: $0.period.clampedNanoseconds) } }
    }

    /// Receives the library's reports, within `logLimit`, on the thread where the event occurs. Must return quickly.
    ///
    /// The default handler writes each event as one line to standard error, and never blocks. It drops a line that
    /// standard error does not accept at once, and counts dropped lines in the next one.
    public var logHandler: @Sendable (LogEvent) -> Void {
        get { handler.withLock { $0 }.call }
        set {
            let new = ReportHandler(newValue)
            // Released outside the lock, because the old handler's captures may log.
            let old = handler.withLock { handler in
                defer { handler = new }
                return handler
            }
            withExtendedLifetime(old) {}
        }
    }

    /// - Parameter body: called with every event, on the thread where it occurs. Must not log. `nil` for none.
    package func observe(_ body: (@Sendable (LogEvent) -> Void)?) {
        observer.withLock { $0 = body.map { ReportHandler($0) } }
    }

    package func log(_ event: LogEvent) {
        if EventLoop.isVanishingOnThisThread { return }
        observer.withLock { $0 }?.call(event)
        if limited.admit(event.key) { logHandler(event) }
    }
}
