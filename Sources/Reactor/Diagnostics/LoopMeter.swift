/// Invariant: used on the loop's thread only. A class, because a measured handler uses the loop and thereby this
/// object; `@exclusivity(unchecked)` for the same reasons as in `EventLoop`.
@usableFromInline
final class LoopMeter {
    private let clock: LoopClock
    @exclusivity(unchecked) private(set) var isTiming = false
    @exclusivity(unchecked) private(set) var readsClock = false
    @exclusivity(unchecked) var probe: LoopProbe? { didSet { update() } }
    @exclusivity(unchecked) private(set) var measuresTurns = false
    @exclusivity(unchecked) private(set) var nanosecondsWaiting: Int64 = 0
    @exclusivity(unchecked) private var nanosecondsOfLongestTurn: Int64 = 0
    @exclusivity(unchecked) @usableFromInline var counters = LoopMetrics()
    /// The last measured turn's end, if the next turn follows at once and so begins its wait then; `unknown` otherwise.
    @exclusivity(unchecked) var endOfTurn = LoopMeter.unknown
    /// The current handler's beginning, which is the previous one's end; `unknown` if not measured.
    @exclusivity(unchecked) private var started = LoopMeter.unknown
    @exclusivity(unchecked) private var nanosecondsOfSlow = Int64.max
    @exclusivity(unchecked) private var nanosecondsOfLongest: Int64 = -1
    @exclusivity(unchecked) private var longest: SlowHandler?
    @exclusivity(unchecked) private var slow = 0
    /// For tests: the number of waiters that this thread visited to cancel, withdraw and sweep, plus the links that it
    /// followed to list pending promises. A frequent operation must not visit thousands of nodes.
    @exclusivity(unchecked) var nodesVisited = 0

    static var unknown: Int64 { .min }

    init(_ clock: LoopClock) { self.clock = clock }

    @exclusivity(unchecked) var measured = LoopMetrics.Measured.nothing {
        didSet { update() }
    }

    var threshold: Duration? {
        get { nanosecondsOfSlow == .max ? nil : .nanoseconds(nanosecondsOfSlow) }
        set {
            nanosecondsOfSlow = newValue.map { min($0.clampedNanoseconds, .max - 1) } ?? .max
            update()
        }
    }

    private func update() {
        let isOn = timesHandlers || probe?.isMeasuring == true
        // The handler that switches timing on is not timed.
        if isOn != readsClock { started = Self.unknown }
        readsClock = isOn
        isTiming = isOn || probe != nil
        measuresTurns = measured != .nothing || probe?.isMeasuring == true
    }

    private var timesHandlers: Bool { measured == .handlers || threshold != nil }

    var metrics: LoopMetrics {
        var snapshot = counters
        if measured != .nothing {
            snapshot.timeWaiting = .nanoseconds(nanosecondsWaiting)
            snapshot.longestTurn = .nanoseconds(nanosecondsOfLongestTurn)
        }
        if timesHandlers { snapshot.longestHandler = longest }
        if threshold != nil { snapshot.slowHandlers = slow }
        return snapshot
    }

    // MARK: Turns and waits

    /// The beginning of a measured wait: the previous turn's end if this turn follows at once.
    @inline(__always)
    var beginningOfWait: Int64 { endOfTurn == Self.unknown ? clock.now.nanoseconds : endOfTurn }

    /// Notes a wait that ends now. Returns the clock's reading.
    @inline(__always)
    func noteWait(since began: Int64) -> Int64 {
        let ended = clock.now.nanoseconds
        nanosecondsWaiting += ended - began
        return ended
    }

    /// Notes a turn, or part of one, that ends now.
    /// - Returns: the clock's reading.
    @discardableResult
    func noteTurn(since began: Int64) -> Int64 {
        let ended = clock.now.nanoseconds
        nanosecondsOfLongestTurn = max(nanosecondsOfLongestTurn, ended - began)
        return ended
    }

    /// - Parameter waited: `nanosecondsWaiting` at `previous`, the previous turn's end. The wait ended at `polled`.
    @inline(never)
    func showTurn(after previous: Int64, _ waited: Int64, polled: Int64) {
        let wait = nanosecondsWaiting - waited
        guard let probe, endOfTurn != Self.unknown, polled != Self.unknown else { return }
        let began = previous != Self.unknown ? previous : polled - wait
        probe.recording?.add(.turn, began, endOfTurn)
        if wait > 0 { probe.recording?.add(.wait, polled - wait, polled) }
    }

    // MARK: Handlers

    @inline(__always)
    func beginTiming() { if readsClock { started = clock.now.nanoseconds } }

    @inline(__always)
    func run(_ job: Unmanaged<Job>) {
        if isTiming { runTimed(job) } else { job._withUnsafeGuaranteedRef { $0.runAndRelease() } }
    }

    @inline(never)
    private func runTimed(_ job: Unmanaged<Job>) {
        // Read first, since running the job may release it.
        guard readsClock else {
            let (kind, callSite) = job._withUnsafeGuaranteedRef { ($0.kind, $0.handlerCallSite) }
            return callShown(kind, callSite, -1) { job._withUnsafeGuaranteedRef { $0.runAndRelease() } }
        }
        let (kind, callSite, subject) = job._withUnsafeGuaranteedRef { ($0.kind, $0.handlerCallSite, $0.subject) }
        callTimed(kind, callSite, subject, -1, job) { job._withUnsafeGuaranteedRef { $0.runAndRelease() } }
    }

    @inline(__always)
    func call(
        _ kind: HandlerKind, _ callSite: @autoclosure () -> CallSite?,
        _ subject: @autoclosure () -> (any AnyObject & Sendable)? = nil, descriptor: Int = -1, _ body: () -> Void
    ) {
        guard isTiming else { return body() }
        guard readsClock else { return callShown(kind, callSite(), descriptor, body) }
        callTimed(kind, callSite(), subject(), descriptor, nil, body)
    }

    /// Shows the handler to the probe without a reading of the clock.
    @inline(__always)
    private func callShown(_ kind: HandlerKind, _ callSite: CallSite?, _ descriptor: Int, _ body: () -> Void) {
        let probe = probe
        let outer = probe?.handlerBegins(kind, callSite, descriptor, at: Self.unknown)
        body()
        if let probe, let outer { probe.handlerDidEnd(outer) }
    }

    /// Reads the facts first, since the call may release the handler.
    @inline(never)
    private func callTimed(
        _ kind: HandlerKind, _ callSite: CallSite?, _ subject: (any AnyObject & Sendable)?, _ descriptor: Int,
        _ job: Unmanaged<Job>?, _ body: () -> Void
    ) {
        if started == Self.unknown { beginTiming() }
        let probe = probe
        let began = started
        let outer = probe?.handlerBegins(kind, callSite, descriptor, at: began)
        let recording = probe?.recording
        let begun = recording.flatMap {
            let descriptor = descriptor < 0 ? nil : CInt(descriptor)
            return $0.begin(
                .handler(kind, callSite, descriptor: descriptor, subject: subject), at: began, job?.toOpaque())
        }
        let wasInterrupted = probe?.setInterrupted(false)
        body()
        let hasTurned = probe?.setInterrupted(wasInterrupted ?? false)
        if let probe, let outer { probe.handlerDidEnd(outer) }
        // The handler may have switched timing off.
        guard readsClock && started != Self.unknown else { return }
        let now = clock.now.nanoseconds
        let time = now - started
        started = now
        if let recording, let begun { recording.end(begun, at: now, wasInterrupted: hasTurned ?? true) }
        guard time >= nanosecondsOfSlow || time > nanosecondsOfLongest || probe != nil else { return }
        let handler = SlowHandler(duration: .nanoseconds(time), kind: kind, callSite: callSite)
        probe?.note(handler)
        if time > nanosecondsOfLongest {
            nanosecondsOfLongest = time
            longest = handler
        }
        guard time >= nanosecondsOfSlow else { return }
        slow += 1
        LoopEvent.send(.slowHandler(handler, subject: subject))
        // No handler is charged for the report.
        beginTiming()
    }

    /// Begins a turn inside a handler, whose own time excludes that turn.
    /// - Returns: the handler's time so far, for `resumeHandler`.
    func interruptHandler() -> Int64? {
        _ = probe?.setInterrupted(true)
        return readsClock && started != Self.unknown ? clock.now.nanoseconds - started : nil
    }

    func resumeHandler(after time: Int64?) { if let time { started = clock.now.nanoseconds - time } }
}
