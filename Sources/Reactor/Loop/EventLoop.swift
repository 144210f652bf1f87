import CLinux
import Glibc
import Synchronization

/// A single-threaded event loop over epoll: ready jobs, timers, descriptors, signals, and a mailbox for other threads.
///
/// Every thread has one, made when it is first asked for; see `current`. It is driven by its own thread, with
/// `run()`, `run(until:)` or `turn(_:)`, and used by its own thread: it is not `Sendable`, and `remote` is its door for
/// all others. Its descriptors are opened when they are first needed; jobs alone need none.
///
/// One turn: jobs that are ready; then descriptors are asked, waiting only if there was nothing to do; then the events
/// that came; then the timers that were due when descriptors were asked; then the jobs that all of these made ready.
/// Within a turn jobs run in the order in which they were queued, timers in the order of their deadlines, events in
/// the kernel's order.
public final class EventLoop {
    // `@exclusivity(unchecked)`: one thread, and nothing is called out to while a field is being changed; the dynamic
    // checks for these fields cost a quarter of the instructions of a handler's hop, and as much of a turn.
    //
    // First what every turn looks at, close together: a thread that wakes up has none of it in the cache.
    @exclusivity(unchecked) @usableFromInline var queues = JobQueues()
    @exclusivity(unchecked) @usableFromInline var keepAlive = KeepAlive<Remote>()
    @usableFromInline let shared = SharedLoopState<Remote>()
    package let kernel: CountingSyscalls
    package let clock: LoopClock
    @exclusivity(unchecked) var poller = Poller()
    @exclusivity(unchecked) var timers = LoopTimers()
    @exclusivity(unchecked) var waker = LoopWaker()
    @exclusivity(unchecked) var lifecycle = LoopLifecycle<Remote>()
    @exclusivity(unchecked) var meter = LoopMeter()
    /// Where handlers have been attached since the loop was driven last, if it may never be driven.
    @exclusivity(unchecked) var undrivenDetector: UndrivenLoopDetector?
    @exclusivity(unchecked) var hooks = LoopHooks()
    @exclusivity(unchecked) var signals = LoopSignals()
    @exclusivity(unchecked) var registrations = RegistrationRetries()
    @exclusivity(unchecked) var mainActor = MainActorState()
    @exclusivity(unchecked) var scratchBuffer = ScratchBuffer()

    package init(clock: LoopClock = .monotonic, syscalls: Syscalls = Syscalls(), name: String? = nil) {
        self.clock = clock
        kernel = CountingSyscalls(syscalls)
        lifecycle.remote = Remote(of: self, name: name)
    }

    deinit {
        // Whoever is posting to us has done so; nobody begins.
        Self.ends.withLock { _ in }
    }

    // MARK: Driving

    /// A moment on the loop's clock.
    public typealias Instant = LoopInstant
    /// What a loop has done.
    public typealias Metrics = LoopMetrics

    /// How a turn waits.
    public enum Wait: Equatable, Sendable {
        /// Until something happens, for ever if need be.
        case wait
        /// Not at all.
        case poll
        /// As `wait`, but no longer than this.
        case upTo(Duration)
    }

    /// Turns until nothing is left that could happen, or until `stop()`.
    ///
    /// What is left: ready jobs, timers, watches, signal watches and holds, save those that are unreferenced; and jobs of a
    /// `ThreadPool` whose results this loop waits for. Any other result that another thread is to bring is not seen from
    /// here: take a `hold()`. May be called in a handler: a nested run, which ends as
    /// the outer one would.
    ///
    /// - Throws: `SystemError` if a descriptor of the loop cannot be opened, or if this process is a fork of the one
    ///   that made the loop (`EPERM` of `epoll_wait`); inside a handler also when less than 256 KiB of the thread's stack,
    ///   or a quarter of it if that is less, remains (`ELOOP`).
    @available(*, noasync, message: "an async function must not block its thread; it has no loop of its own to drive")
    public func run() throws(SystemError) {
        while !lifecycle.stopRequested && !lifecycle.isStopping && (isAlive || runLateMainActorJobs()) {
            try turn(isAlive ? .wait : .poll)
        }
        lifecycle.stopRequested = false
    }

    /// Turns until `condition` holds, until nothing is left that could make it so, or until `stop()`.
    ///
    /// The condition is asked before each turn. What the turn before made ready has run by then, unless that was more than
    /// a turn's budget of jobs.
    /// - Returns: whether the condition held in the end.
    /// - Throws: as `run()`, and what `condition` throws.
    @available(*, noasync, message: "an async function must not block its thread; it has no loop of its own to drive")
    @discardableResult
    public func run(until condition: () throws -> Bool) throws -> Bool {
        defer { lifecycle.stopRequested = false }
        while try !condition() {
            guard !lifecycle.stopRequested && !lifecycle.isStopping && (isAlive || runLateMainActorJobs()) else {
                return false
            }
            try turn(isAlive ? .wait : .poll)
        }
        return true
    }

    /// Ends the innermost `run()` after its present turn. If none is running, the next one ends at once. Twice is as
    /// good as once; afterwards the loop can run again.
    public func stop() {
        assertOwner()
        lifecycle.stopRequested = true
    }

    /// One turn; see the type's description.
    /// - Throws: as `run()`.
    @available(*, noasync, message: "an async function must not block its thread; it has no loop of its own to drive")
    public func turn(_ wait: Wait = .wait) throws(SystemError) {
        try checkWhetherItCanTurn()
        assertOwner()
        // A loop of `withLoop` may be carried by the one around it, or the other way round.
        let outer = clinux_get_current_loop()
        clinux_set_current_loop(Unmanaged.passUnretained(self).toOpaque())
        lifecycle.depth += 1
        defer {
            lifecycle.depth -= 1
            clinux_set_current_loop(outer)
        }
        let isFastPath = !meter.isTiming && !meter.measuresTurns && !queues.inline.isRunning && undrivenDetector == nil
        if isFastPath { try turn(wait, hasWorked: false, isMeasured: false) } else { try turnSlowPath(wait) }
    }

    // What is rare is in functions of its own, here and in what a turn calls. Who wakes up finds none of the code in the
    // processor's cache, and waits for each line of it, also for what it jumps over.

    /// Inlined into the two kinds of turn there are, of which the usual one so has nothing to ask.
    @inline(__always)
    private func turn(_ wait: Wait, hasWorked: Bool, isMeasured: Bool) throws(SystemError) {
        meter.counters.turns += 1
        if waker.isParked { unpark() }
        shared.waker.mailbox.take(into: &queues.ready)
        // Mail, and what the budget of the turn before has left.
        let early = isMeasured && !queues.ready.isEmpty ? now.nanoseconds : nil
        let worked = drain() || hasWorked
        if let early { noteTurn(since: early) }
        if poller.hasUndelivered {
            // A nested turn first delivers what the outer one has fetched. What has arrived since then is asked for before
            // any timer fires.
            poller.expectMore()
        } else {
            var mayBlock = !worked && queues.ready.isEmpty
            var limit = Int64.max
            switch wait {
            case .wait: break
            case .poll: mayBlock = false
            case .upTo(let duration): limit = deadline(after: duration).nanoseconds
            }
            try poll(mayBlock: mayBlock, limit)
        }
        let began = isMeasured ? now.nanoseconds : nil
        // Taken before the events: a timer that becomes due while they are delivered waits until the kernel has been asked
        // once more. What has arrived by then may be what the timer is to wait for no longer.
        let due = timers.heap.isEmpty ? nil : timers.due(at: now.nanoseconds)
        let hasEvents = poller.hasUndelivered
        if hasEvents { deliverEvents() }
        if let due { try fire(due, afterEvents: hasEvents) }
        takeMail()
        _ = drain()
        if let began { noteTurn(since: began) }
        if waker.isCarried && queues.ready.isEmpty { try prepareForEmbedding() }
    }

    /// A turn that is measured, or made inside what is, or inside an inline job, or on a thread that may not drive its loop.
    @inline(never)
    private func turnSlowPath(_ wait: Wait) throws(SystemError) {
        let wasNoting = lifecycle.depth == 1 && beginDriving()
        defer { if wasNoting { stopDriving() } }
        // Those that wait behind an inline job must not wait for its return.
        let isInsideInlineJob = queues.inline.isRunning
        if isInsideInlineJob { completeInterrupted() }
        let hasWorked = isInsideInlineJob && runInlineJobs()
        // What a handler does with the loop is not its own time.
        let isInterrupting = meter.isTiming && lifecycle.depth > 1 && meter.handlers.started != HandlerProfiler.unknown
        let interrupted = isInterrupting ? clock.now.nanoseconds - meter.handlers.started : nil
        defer {
            if let interrupted { meter.handlers.started = clock.now.nanoseconds - interrupted }
            if isInsideInlineJob { queues.inline.resume() }
        }
        try turn(wait, hasWorked: hasWorked, isMeasured: meter.measuresTurns)
    }

    @inline(__always)
    func checkWhetherItCanTurn() throws(SystemError) {
        if isForked || hasEnded { try refuseTurn() }
        if lifecycle.depth > 0 { try checkStack() }
    }

    @inline(never)
    private func refuseTurn() throws(SystemError) {
        guard isForked else { throw SystemError(.epollWait, EBADF, detail: "the loop has ended") }
        throw SystemError(.epollWait, EPERM, detail: "the loop belongs to the process that this one was forked from")
    }

    /// For a turn, or ready jobs, inside a handler: each level takes stack, and how many there are may depend on peers, as
    /// where a server's handlers hang. Too deep is an error while there is still stack to handle it.
    @inline(never)
    package func checkStack() throws(SystemError) {
        guard clinux_stack_is_low() else { return }
        let detail =
            "the loop is driven inside too many of its own handlers, \(lifecycle.depth) turns deep: the stack is nearly used"
        throw SystemError(.epollWait, ELOOP, detail: detail)
    }

    /// Whether the loop has ended.
    @inline(__always)
    package var hasEnded: Bool { lifecycle.hasEnded }

    /// Whether the end has released everything, so that nothing would ever release what is added now.
    var isClosed: Bool { hasEnded && lifecycle.hasReleasedAll }

    /// Tells loops apart where addresses do not.
    package var serial: Int { shared.lifecycle.serial }

    var isBeingDriven: Bool { lifecycle.depth > 0 }

    /// Whether this is called in a handler, or in what else a turn does.
    package var isInsideHandler: Bool { isBeingDriven }

    /// A turn that waits for other threads, for `limit` at most by the real clock, although the loop's may be virtual. For a
    /// loop that has no timer.
    package func turn(forRealAtMost limit: Duration) throws(SystemError) {
        guard clock.isVirtual else { return try turn(.upTo(limit)) }
        timers.realLimit = CInt(clamping: limit.clampedNanoseconds / 1_000_000 + 1)
        defer { timers.realLimit = -1 }
        try turn(.wait)
    }

    /// Runs `body` as if in a turn.
    func whileDriven<Value>(_ body: () -> Value) -> Value {
        let outer = clinux_get_current_loop()
        clinux_set_current_loop(Unmanaged.passUnretained(self).toOpaque())
        lifecycle.depth += 1
        let wasNoting = lifecycle.depth == 1 && beginDriving()
        defer {
            if wasNoting { stopDriving() }
            lifecycle.depth -= 1
            clinux_set_current_loop(outer)
        }
        return body()
    }

    /// Whether who waits on this loop is to give up. (Read from another module `isStopping` itself would be checked for
    /// exclusivity after all.)
    package var shouldStop: Bool { lifecycle.isStopping }

    /// The present moment of the loop's clock. Read anew each time, about 25 ns.
    public var now: Instant { clock.now }

    // MARK: From other threads

    /// Any thread: hands over the caller's reference to `job`; false, and the reference still the caller's, once the loop
    /// has ended.
    package func post(_ job: Unmanaged<Job>) -> Bool { shared.post(job) }

    /// Any thread: whether this is the loop's, with the loop as its current one, and the loop has not ended.
    var isCurrent: Bool { isCurrentOne && !hasEnded }

    /// The same, whether or not it has ended.
    private var isCurrentOne: Bool { clinux_get_current_loop() == Unmanaged.passUnretained(self).toOpaque() }

    /// Whether the calling thread may use the loop, which it must know to be there: it is the loop's own, and the loop has
    /// not ended. (Any other thread reads nothing that the owner could be changing.) It is the thread that counts, and not
    /// whether a turn is under way: a timer may be cancelled between turns, too.
    package var isUsableHere: Bool { EventLoop.owns(self) && !hasEnded }

    /// The same, and the thread drives its loop, as far as is known.
    package var isDrivenHere: Bool { isUsableHere && isKnownToBeDriven }

    /// In every build: traps unless this is the thread that the loop belongs to, or the loop has ended. For calls that are rare
    /// beside what they cost anyway, by handles that the compiler lets a task take along: see docs/concurrency.md.
    func requireOwner(_ call: StaticString = #function) {
        precondition(
            EventLoop.owns(self) || hasEnded,
            "\(call) was called on another thread than the loop's own; use loop.remote there")
    }

    /// In debug builds: this is the thread that the loop belongs to, if it has not ended.
    package func assertOwner(_ call: StaticString = #function) {
        assert(
            EventLoop.owns(self) || hasEnded,
            "\(call) was called on another thread than the loop's own; use loop.remote there")
    }
}
