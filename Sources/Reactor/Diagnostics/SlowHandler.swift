/// What kind of code a loop has called.
public enum HandlerKind: String, Sendable, CaseIterable, CustomStringConvertible {
    /// What was enqueued, submitted or dispatched.
    case job
    /// The closure of a promise's operator.
    case promiseHandler
    /// The callback of a timer.
    case timer
    /// The callback of a watched descriptor; of a connection or listener, the library's own code.
    case watch
    /// The callback of a signal.
    case signal
    /// What was given to `beforeWaiting` or `afterWaiting`.
    case hook

    /// `promise handler`
    public var description: String { self == .promiseHandler ? "promise handler" : rawValue }
}

/// A handler that has held its loop for longer than `EventLoop.slowHandlerThreshold`.
public struct SlowHandler: Hashable, Sendable, CustomStringConvertible {
    /// How long nothing else could happen on the loop. Turns that the handler itself has made of the loop do not count.
    public let duration: Duration
    /// What was called.
    public let kind: HandlerKind
    /// Where the job, timer, watch or hook was started; of a promise's handler, where the operator was called, which is
    /// known if the promise was made while promises were traced. `nil`: not known, for what was started before the
    /// threshold was set.
    public let origin: CallSite?
    /// How many slow handlers before this one were not reported, since there were too many within a second.
    public let suppressedCount: Int

    /// `a timer at App/Server.swift:12 held the loop for 0.25 seconds`
    public var description: String {
        "a \(kind)\(origin.map { " at \($0)" } ?? "") held the loop for \(duration)"
            + (suppressedCount > 0 ? " (\(suppressedCount) more before it were not reported)" : "")
    }
}

/// What is known of a handler, taken down before it runs: afterwards it may be gone.
struct HandlerInfo {
    var kind: HandlerKind
    var origin: CallSite?
    var subject: (any AnyObject & Sendable)?
}

/// The time of the handler that runs, and what has become of the times before. It is the clock of the loop that counts.
struct HandlerProfiler {
    /// When the present handler began: when the one before it ended. `unknown`: the time was not taken then.
    var started = unknown
    static var unknown: Int64 { .min }
    var threshold = Int64.max
    private(set) var longest: Int64 = 0
    private(set) var longestIdentity: HandlerInfo?
    private(set) var slow = 0
    private var second = Int64.min
    private var reports = 0
    private var suppressedCount = 0

    /// One that is as slow as ten others would be lost among a hundred reports, and each takes time of its own.
    private static var reportsPerSecond: Int { 10 }

    /// The handler has ended. Answers what is to be reported.
    mutating func note(_ identity: HandlerInfo, endedAt now: Int64) -> SlowHandler? {
        let time = now - started
        started = now
        if time > longest {
            longest = time
            longestIdentity = identity
        }
        guard time >= threshold else { return nil }
        slow += 1
        if second == .min || now - second >= 1_000_000_000 {
            second = now
            reports = 0
        }
        guard reports < Self.reportsPerSecond else {
            suppressedCount += 1
            return nil
        }
        reports += 1
        defer { suppressedCount = 0 }
        return SlowHandler(
            duration: .nanoseconds(time), kind: identity.kind, origin: identity.origin, suppressedCount: suppressedCount
        )
    }
}

extension EventLoop {
    /// A handler that holds the loop for this long or longer is reported through the log handler of `Promises`, or on
    /// standard error; ten a second at most, and the next then tells how many were left out. All are counted in
    /// `metrics.slowHandlers`. `nil`, the default: nothing is measured, and that costs nothing.
    ///
    /// While it is set every handler costs a reading of the clock, about 25 ns, and what is enqueued, submitted or
    /// scheduled remembers the line of the call.
    public var slowHandlerThreshold: Duration? {
        get { meter.handlers.threshold == .max ? nil : .nanoseconds(meter.handlers.threshold) }
        set {
            assertOwner()
            meter.handlers.threshold = newValue.map { min($0.clampedNanoseconds, .max - 1) } ?? .max
            timingHasChanged()
        }
    }

    /// Whether to take the time of every handler, for `Metrics.longestHandler`, and of every wait, for
    /// `Metrics.timeWaiting`. One reading of the clock a handler, about 25 ns, and two a wait; off by default.
    public var measuresHandlers: Bool {
        get { meter.measuresHandlers }
        set {
            meter.measuresHandlers = newValue
            timingHasChanged()
        }
    }

    /// Whether to take the time of every wait, for `Metrics.timeWaiting`, and of every turn, for `Metrics.longestTurn`.
    /// Three readings of the clock a turn, about 75 ns, however much happens in it; off by default.
    public var measuresTurns: Bool {
        get { meter.measuresTurns }
        set { meter.measuresTurns = newValue }
    }

    /// See `LoopMeter.nodesVisited`.
    package var nodesVisited: Int { meter.nodesVisited }

    private func timingHasChanged() {
        meter.update()
        shared.keepsOrigins.store(meter.isTiming, ordering: .relaxed)
    }

    /// What is called from now on begins now.
    func beginTiming() { meter.handlers.started = clock.now.nanoseconds }

    /// A closure as a job, which knows where it comes from if anybody wants to know.
    func job(_ body: @escaping () -> Void, _ file: StaticString, _ line: UInt) -> Job {
        meter.isTiming ? LocatedJob(body, CallSite(file, line)) : ClosureJob(body)
    }

    @inline(never)
    func runTimed(_ job: Unmanaged<Job>) {
        if meter.handlers.started == HandlerProfiler.unknown { beginTiming() }
        let identity = job._withUnsafeGuaranteedRef {
            HandlerInfo(kind: $0.kind, origin: $0.startedAt, subject: $0.subject)
        }
        job._withUnsafeGuaranteedRef { $0.runAndRelease() }
        handlerHasEnded(identity)
    }

    func handlerHasEnded(_ identity: HandlerInfo) {
        // It may have been switched off meanwhile.
        guard meter.isTiming && meter.handlers.started != HandlerProfiler.unknown else { return }
        guard let slow = meter.handlers.note(identity, endedAt: clock.now.nanoseconds) else { return }
        LoopEvent.send(.slowHandler(slow, subject: identity.subject))
        // The report is nobody's time.
        beginTiming()
    }

    /// Calls `body` as a handler of that kind.
    func call(
        _ kind: HandlerKind, _ origin: @autoclosure () -> CallSite?,
        _ subject: @autoclosure () -> (any AnyObject & Sendable)? = nil, _ body: () -> Void
    ) {
        guard meter.isTiming else { return body() }
        if meter.handlers.started == HandlerProfiler.unknown { beginTiming() }
        let identity = HandlerInfo(kind: kind, origin: origin(), subject: subject())
        body()
        handlerHasEnded(identity)
    }
}
