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
    // checks for these fields cost a quarter of the instructions of a promise's hop, and as much of a turn.
    //
    // First what every turn looks at, close together: who wakes up has none of it in the cache.
    @exclusivity(unchecked) @usableFromInline var ready = ReadyQueue()
    @exclusivity(unchecked) @usableFromInline package internal(set) var waitingHandlers = 0
    @exclusivity(unchecked) var inlineJobs = Trampoline()
    @usableFromInline let mailbox = Mailbox()
    package let kernel: CountingSyscalls
    package let clock: LoopClock
    @exclusivity(unchecked) var poller = Poller()
    @exclusivity(unchecked) var timers = TimerHeap()
    let forkGeneration = ForkDetector.generation
    @exclusivity(unchecked) private var depthOfTurns = 0
    /// See `drainReady`.
    @exclusivity(unchecked) var hasLongJobs = false
    /// Whether the time of handlers is taken.
    @exclusivity(unchecked) var isTiming = false
    /// Whether to take the time of every handler, for `Metrics.longestHandler`, and of every wait, for
    /// `Metrics.timeWaiting`. One reading of the clock a handler, about 25 ns, and two a wait; off by default.
    @exclusivity(unchecked) public var measuresHandlers = false {
        didSet { timingHasChanged() }
    }
    /// Whether to take the time of every wait, for `Metrics.timeWaiting`, and of every turn, for `Metrics.longestTurn`.
    /// Three readings of the clock a turn, about 75 ns, however much happens in it; off by default.
    @exclusivity(unchecked) public var measuresTurns = false
    @exclusivity(unchecked) var stopRequested = false
    /// Whether runs are to end, since the loop's thread is: see `spawn`.
    @exclusivity(unchecked) var isStopping = false
    @exclusivity(unchecked) package internal(set) var hasEnded = false
    // Another event loop waits for this one, by `fileDescriptor`: the mailbox is left parked between turns, so that
    // mail shows there.
    @exclusivity(unchecked) var isCarried = false
    // We have parked the mailbox and not yet looked whether somebody found it so.
    @exclusivity(unchecked) var isParked = false
    // Read by other threads, after they have found the mailbox parked; written before it is.
    let wakeDescriptor = Atomic<CInt>(-1)
    @exclusivity(unchecked) var timerDescriptor: CInt = -1
    // The moment for which the timerfd is armed; `.max` when it is not.
    @exclusivity(unchecked) var armedDeadline = Int64.max
    // How often another thread found us parked: each has written the eventfd, or is about to.
    @exclusivity(unchecked) var wakesOwed: UInt64 = 0
    /// Where handlers have been attached since it was driven last, if it may be that nobody ever does.
    @exclusivity(unchecked) var undrivenDetector: UndrivenLoopDetector?
    /// Work that other threads do for this loop: see `Remote.beginExternalWork`.
    let externalWork = ExternalWorkCounts()
    // See `keepRecycledWaiter`. Owned.
    @exclusivity(unchecked) var recycledWaiter: Unmanaged<Job>?
    @exclusivity(unchecked) var hooks = LoopHooks()
    @exclusivity(unchecked) var counters = LoopMetrics()
    @exclusivity(unchecked) var holds: [Int: CallSite] = [:]

    @exclusivity(unchecked) var signals = LoopSignals()
    @exclusivity(unchecked) var lastHold = 0
    @exclusivity(unchecked) var discardedJobs = Trampoline()
    /// What the inline job that runs has interrupted, if it is to be completed before a turn; see `runInline`.
    @exclusivity(unchecked) var interrupted: Interrupted?
    // The context is on the stack of the call of `runInline` that has set the field, and resets it before it returns.
    struct Interrupted {
        let context: UnsafeMutableRawPointer
        let complete: Completion
    }
    /// How many waiters have been looked at on this thread to cancel, withdraw and sweep, and how many links for
    /// `pendingPromises`. For tests: what is done by the thousand must not look at thousands each time.
    @exclusivity(unchecked) package var nodesVisited = 0
    @exclusivity(unchecked) var profiler = HandlerProfiler()
    /// The same as `isTiming` for other threads, which so know whether to remember where a job comes from.
    let keepsOrigins = Atomic(false)
    /// Handlers that dispatchers have; see `Remote.beginDispatchedJob`.
    let dispatchedJobs = Atomic<Int>(0)
    /// Whether a job is on its way here that only says that such work has ended.
    let isWakeJobPosted = Atomic(false)
    /// How many milliseconds a virtual clock's loop really waits, where it does; below zero forever.
    @exclusivity(unchecked) var realLimit: CInt = -1
    /// Whom the job of a pool works for that this thread is at.
    @exclusivity(unchecked) var requestingLoop: Remote?
    /// See `isClosed`.
    @exclusivity(unchecked) var hasReleasedAll = false
    // Until the loop ends. It holds the loop in turn.
    var door: Remote?
    /// Opened when nothing of the loop's end is left to do.
    let isOver = Latch()
    /// See `servesMainActor`. `nil`: not known yet.
    @exclusivity(unchecked) var isOnMainThread: Bool?
    @exclusivity(unchecked) var isRunningMainActorJobs = false
    @exclusivity(unchecked) var watchesMainActorQueue = false
    // Registrations: see `retryRegistrations`, `noteFutileReadiness` and `endStray`.
    @exclusivity(unchecked) var retryTimer: UInt64?
    @exclusivity(unchecked) var lastShortage: LoopInstant?
    @exclusivity(unchecked) var futile: [CInt: FutileReadiness] = [:]
    @exclusivity(unchecked) var hasReportedStray = false
    @exclusivity(unchecked) var turnOfNextRebuild = 0
    // The thread that drives the loop; set before the loop is first handed out.
    var owner = pthread_self()
    // Handlers that were left behind when the loop ended; each keeps one count of this object alive in common.
    let outstandingHandlers = Atomic<Int>(0)
    /// The loop around this one, which releases what handlers leave behind: see `nameHeir`.
    let heir = AtomicLazyReference<Remote>()
    /// Whether a loop inside this one has named it as its heir.
    var isHeir = false
    /// Whether a job of Swift's has been reported that came after the end.
    let hasReportedTask = Atomic(false)
    @exclusivity(unchecked) var buffer: UnsafeMutableRawBufferPointer?

    /// Tells loops apart where addresses do not: a new one may have the address of one that has ended.
    package let serial = EventLoop.serials.add(1, ordering: .relaxed).newValue
    private static let serials = Atomic<Int>(0)

    package init(clock: LoopClock = .monotonic, syscalls: Syscalls = Syscalls(), name: String? = nil) {
        self.clock = clock
        kernel = CountingSyscalls(syscalls)
        door = Remote(of: self, name: name)
    }

    deinit {
        // Whoever is posting to us has done so; nobody begins.
        Self.ends.withLock { _ in }
        buffer?.deallocate()
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
    /// `ThreadPool` that promises of this loop's thread wait for. Any other promise that another thread is to settle is not
    /// seen from here: take a `hold()`, or `hang` on the promise. May be called in a handler: a nested run, which ends as
    /// the outer one would.
    ///
    /// - Throws: `SystemError` if a descriptor of the loop cannot be opened, or if this process is a fork of the one
    ///   that made the loop (`EPERM` of `epoll_wait`); inside a handler also when less than 256 KiB of the thread's stack,
    ///   or a quarter of it if that is less, remains (`ELOOP`).
    @available(*, noasync, message: "an async function must not block its thread; it has no loop of its own to drive")
    public func run() throws(SystemError) {
        while !stopRequested && !isStopping && (isAlive || runLateMainActorJobs()) { try turn(isAlive ? .wait : .poll) }
        stopRequested = false
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
        defer { stopRequested = false }
        while try !condition() {
            guard !stopRequested && !isStopping && (isAlive || runLateMainActorJobs()) else { return false }
            try turn(isAlive ? .wait : .poll)
        }
        return true
    }

    /// Ends the innermost `run()` after its present turn. If none is running, the next one ends at once. Twice is as
    /// good as once; afterwards the loop can run again.
    public func stop() {
        assertOwner()
        stopRequested = true
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
        depthOfTurns += 1
        defer {
            depthOfTurns -= 1
            clinux_set_current_loop(outer)
        }
        let isFastPath = !isTiming && !measuresTurns && !inlineJobs.isRunning && undrivenDetector == nil
        if isFastPath { try turn(wait, hasWorked: false, isMeasured: false) } else { try turnSlowPath(wait) }
    }

    // What is rare is in functions of its own, here and in what a turn calls. Who wakes up finds none of the code in the
    // processor's cache, and waits for each line of it, also for what it jumps over.

    /// Inlined into the two kinds of turn there are, of which the usual one so has nothing to ask.
    @inline(__always)
    private func turn(_ wait: Wait, hasWorked: Bool, isMeasured: Bool) throws(SystemError) {
        counters.turns += 1
        if isParked { unpark() }
        mailbox.take(into: &ready)
        // Mail, and what the budget of the turn before has left.
        let early = isMeasured && !ready.isEmpty ? now.nanoseconds : nil
        let worked = drain() || hasWorked
        if let early { noteTurn(since: early) }
        if poller.hasUndelivered {
            // A nested turn first delivers what the outer one has fetched. What has arrived since then is asked for before
            // any timer fires.
            poller.expectMore()
        } else {
            var mayBlock = !worked && ready.isEmpty
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
        let due = timers.isEmpty ? nil : dueTimers()
        let hasEvents = poller.hasUndelivered
        if hasEvents { deliverEvents() }
        if let due { try fire(due, afterEvents: hasEvents) }
        takeMail()
        _ = drain()
        if let began { noteTurn(since: began) }
        if isCarried && ready.isEmpty { try prepareForEmbedding() }
    }

    /// A turn that is measured, or made inside what is, or inside an inline job, or on a thread that may not drive its loop.
    @inline(never)
    private func turnSlowPath(_ wait: Wait) throws(SystemError) {
        let wasNoting = depthOfTurns == 1 && beginDriving()
        defer { if wasNoting { stopDriving() } }
        // Those that wait behind an inline job must not wait for its return.
        let isInsideInlineJob = inlineJobs.isRunning
        if isInsideInlineJob { completeInterrupted() }
        let hasWorked = isInsideInlineJob && runInlineJobs()
        // What a handler does with the loop is not its own time.
        let isInterrupting = isTiming && depthOfTurns > 1 && profiler.started != HandlerProfiler.unknown
        let interrupted = isInterrupting ? clock.now.nanoseconds - profiler.started : nil
        defer {
            if let interrupted { profiler.started = clock.now.nanoseconds - interrupted }
            if isInsideInlineJob { inlineJobs.resume() }
        }
        try turn(wait, hasWorked: hasWorked, isMeasured: measuresTurns)
    }

    @inline(__always)
    func checkWhetherItCanTurn() throws(SystemError) {
        if isForked || hasEnded { try refuseTurn() }
        if depthOfTurns > 0 { try checkStack() }
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
            "the loop is driven inside too many of its own handlers, \(depthOfTurns) turns deep: the stack is nearly used"
        throw SystemError(.epollWait, ELOOP, detail: detail)
    }
    /// Whether the end has released everything, so that nothing would ever release what is added now.
    var isClosed: Bool { hasEnded && hasReleasedAll }

    var isBeingDriven: Bool { depthOfTurns > 0 }

    /// Whether this is called in a handler, or in what else a turn does.
    package var isInsideHandler: Bool { isBeingDriven }

    /// A turn that waits for other threads, for `limit` at most by the real clock, although the loop's may be virtual. For a
    /// loop that has no timer.
    package func turn(forRealAtMost limit: Duration) throws(SystemError) {
        guard clock.isVirtual else { return try turn(.upTo(limit)) }
        realLimit = CInt(clamping: limit.clampedNanoseconds / 1_000_000 + 1)
        defer { realLimit = -1 }
        try turn(.wait)
    }

    /// Runs `body` as if in a turn.
    func whileDriven<Value>(_ body: () -> Value) -> Value {
        let outer = clinux_get_current_loop()
        clinux_set_current_loop(Unmanaged.passUnretained(self).toOpaque())
        depthOfTurns += 1
        let wasNoting = depthOfTurns == 1 && beginDriving()
        defer {
            if wasNoting { stopDriving() }
            depthOfTurns -= 1
            clinux_set_current_loop(outer)
        }
        return body()
    }

    /// Whether anything is left that the loop waits for.
    public var isAlive: Bool {
        // First: what such work has posted to us before it ended must be seen in the mailbox then.
        awaitsExternalWork || !ready.isEmpty || !mailbox.isEmpty || timers.referenced > 0 || poller.referenced > 0
            || poller.hasUndelivered || !holds.isEmpty || signals.hasReferenced
    }

    /// Whether who waits on this loop is to give up. (Read from another module `isStopping` itself would be checked for
    /// exclusivity after all.)
    package var shouldStop: Bool { isStopping }

    /// Whether anything on this loop, referenced or not, or work that it knows of, could still make something happen; if not,
    /// only another thread can.
    package var canWakeItself: Bool {
        isAlive || !timers.isEmpty || poller.waiting > 0 || !signals.handlers.isEmpty || requestingLoopAwaitsOthers
            || dispatchedJobs.load(ordering: .relaxed) > 0
    }

    /// The present moment of the loop's clock. Read anew each time, about 25 ns.
    public var now: Instant { clock.now }

    // MARK: From other threads

    /// Any thread: hands over the caller's reference to `job`; false, and the reference still the caller's, once the loop
    /// has ended.
    package func post(_ job: Unmanaged<Job>) -> Bool {
        switch mailbox.post(job) {
        case .delivered: return true
        case .deliveredToSleeper:
            // The descriptor of a forked child is the parent's too, which counts what is written there.
            if isForked { return true }
            // The loop does not close this descriptor before it has seen our write: see `close`.
            var one: UInt64 = 1
            _ = write(wakeDescriptor.load(ordering: .acquiring), &one, 8)
            return true
        case .refused: return false
        }
    }

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
