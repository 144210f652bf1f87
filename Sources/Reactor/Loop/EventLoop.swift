import CLinux
import Glibc
import Synchronization

/// A single-threaded event loop over epoll: ready jobs, timers, descriptors, signals, and a mailbox for other threads.
///
/// ```swift
/// let loop = EventLoop.current
/// loop.schedule(after: .seconds(1)) { print("one second later") }
/// try loop.run()                                // returns when nothing is left that could happen
/// ```
///
/// Every thread has its own loop, created on first use; see `current`. Only that thread drives the loop, with `run()`,
/// `run(until:)` or `turn(_:)`, and only that thread uses it: the loop is not `Sendable`. Other threads use its
/// `remote`. The loop opens its descriptors when they are first needed; jobs alone need none.
///
/// A turn has these steps:
/// 1. Run the ready jobs.
/// 2. Poll the descriptors, waiting only if there was nothing to do.
/// 3. Deliver the events that have arrived.
/// 4. Fire the timers that were due when the descriptors were polled.
/// 5. Run the jobs that these steps have made ready.
///
/// Within a turn, jobs run in the order in which they were queued, timers in the order of their deadlines, and events
/// in the kernel's order.
public final class EventLoop {
    // `@exclusivity(unchecked)`: only one thread accesses the fields, and no code outside the loop is called while a
    // field is being changed. The dynamic checks for these fields cost a quarter of the instructions of a handler's
    // hop, and as much of a turn.
    //
    // The fields that every turn reads come first, close together: a thread that wakes up has none of them in the
    // cache.
    @usableFromInline let jobs: LoopJobs
    @exclusivity(unchecked) @usableFromInline var keepAlive = KeepAlive()
    @exclusivity(unchecked) @usableFromInline var outsideWaiters = OutsideWaiters()
    @usableFromInline let shared = SharedLoopState()
    package let kernel: CountingSyscalls
    package let clock: LoopClock
    let meter: LoopMeter
    let mainActor = MainActorQueue()
    @exclusivity(unchecked) var poller = Poller()
    @exclusivity(unchecked) var timers = TimerHeap()
    @exclusivity(unchecked) var waker = LoopWaker()
    /// How many turns are under way, each inside a handler of the one before.
    @exclusivity(unchecked) var depth = 0
    /// Whether the innermost `run()` must end.
    @exclusivity(unchecked) var stopRequested = false
    /// The loop's remote, until the loop ends. The remote retains the loop in turn.
    @exclusivity(unchecked) var ownRemote: Remote?
    /// An object that the layer above keeps with the loop; see `exchangeAttachment`. Owned; released by the end of the
    /// loop at the latest. Unmanaged, because counting references took 7 % of a `hang`.
    @exclusivity(unchecked) var attachment: Unmanaged<AnyObject>?
    /// The observer of the loop's thread, if the thread may never drive the loop.
    @exclusivity(unchecked) var unrunWork: UnrunWork?
    @exclusivity(unchecked) var hooks = LoopHooks()
    @exclusivity(unchecked) var signals = LoopSignals()
    @exclusivity(unchecked) var registrationFailures = RegistrationFailures()
    @exclusivity(unchecked) var scratchBuffer = ScratchBuffer()
    @exclusivity(unchecked) var ending = LoopEnding()
    @exclusivity(unchecked) var scope = LoopScope.thread
    /// The loop on whose behalf this thread, which belongs to a pool, runs its current job.
    @exclusivity(unchecked) var requestingLoop: Remote?

    package init(clock: LoopClock = .monotonic, syscalls: Syscalls = Syscalls(), name: String? = nil) {
        self.clock = clock
        meter = LoopMeter(clock)
        jobs = LoopJobs(meter, clock)
        kernel = CountingSyscalls(syscalls)
        ownRemote = Remote(of: self, name: name)
    }

    deinit {
        // A thread that is posting to the loop has finished when the lock is taken, and no other thread begins to post.
        Self.ends.withLock { _ in }
        outsideWaiters.releaseMemory()
    }

    // MARK: Driving

    /// How long a turn may wait.
    public enum Wait: Equatable, Sendable {
        /// Waits until something happens, forever if necessary.
        case wait
        /// Does not wait.
        case poll
        /// Waits as `wait` does, but no longer than this duration.
        case upTo(Duration)
    }

    /// Runs turns until nothing is left that could happen, or until `stop()`.
    ///
    /// These keep the loop running: ready jobs, timers, watches, signal watches and holds, unless they are
    /// unreferenced; and jobs of a `ThreadPool` whose results this loop waits for. The loop does not know of any other
    /// result that another thread is to deliver: take a `hold()`. `run()` may be called in a handler; such a nested run
    /// ends under the same conditions as the outer one.
    ///
    /// - Throws: `SystemError` if a descriptor of the loop cannot be opened, or if this process is a fork of the one
    ///   that created the loop (`EPERM` of `epoll_wait`); inside a handler also if less than 256 KiB of the thread's
    ///   stack remains, or less than a quarter of it if that is less (`ELOOP`).
    @available(*, noasync, message: "an async function must not block its thread; it has no loop of its own to drive")
    public func run() throws(SystemError) {
        meter.endOfTurn = LoopMeter.unknown
        while !mustReturn && (isAlive || runLateMainActorJobs()) {
            try turnAgain(isAlive ? .wait : .poll)
        }
        stopRequested = false
    }

    /// Runs turns until `condition` holds, until nothing is left that could make it hold, or until `stop()`.
    ///
    /// The condition is checked before each turn. Jobs that the previous turn made ready have run by then, unless they
    /// exceeded the turn's budget.
    /// - Parameter condition: called on this thread.
    /// - Returns: whether the condition held in the end.
    /// - Throws: `SystemError` as `run()`, and the errors of `condition`.
    @available(*, noasync, message: "an async function must not block its thread; it has no loop of its own to drive")
    @discardableResult
    public func run(until condition: () throws -> Bool) throws -> Bool {
        defer { stopRequested = false }
        while try !condition() {
            guard !mustReturn && (isAlive || runLateMainActorJobs()) else { return false }
            try turn(isAlive ? .wait : .poll)
        }
        return true
    }

    /// Ends the innermost `run()` after its current turn.
    ///
    /// If none is running, the next one ends at once. Further calls before that have no effect. Afterwards the loop can
    /// run again.
    public func stop() {
        assertOwner()
        stopRequested = true
    }

    /// Runs one turn; see the description of the type.
    /// - Parameter wait: how long the turn may wait for events.
    /// - Throws: `SystemError` as `run()`.
    @available(*, noasync, message: "an async function must not block its thread; it has no loop of its own to drive")
    public func turn(_ wait: Wait = .wait) throws(SystemError) {
        meter.endOfTurn = LoopMeter.unknown
        try turnAgain(wait)
    }

    /// A turn that follows another one at once: its wait begins when that one ended, so it reads the clock once less if
    /// turns are measured.
    package func turnAgain(_ wait: Wait) throws(SystemError) {
        try checkWhetherItCanTurn()
        try drive(wait)
    }

    /// A turn for a caller that has called `checkWhetherItCanTurn`.
    @inline(__always)
    func drive(_ wait: Wait) throws(SystemError) {
        assertOwner()
        // A loop of `withLoop` may be embedded in the surrounding loop, or the other way round.
        let outer = clinux_get_current_loop()
        clinux_set_current_loop(Unmanaged.passUnretained(self).toOpaque())
        depth += 1
        defer {
            depth -= 1
            clinux_set_current_loop(outer)
        }
        if meter.isTiming || jobs.isRunningInline || unrunWork != nil {
            try takeInterruptedSteps(wait)
        } else if meter.measuresTurns {
            try takeMeasuredSteps(wait)
        } else {
            try takeSteps(wait, hasWorked: false, isMeasured: false)
        }
    }

    @inline(never)
    private func takeMeasuredSteps(_ wait: Wait) throws(SystemError) {
        try takeSteps(wait, hasWorked: false, isMeasured: true)
    }

    // Rare code is in functions of its own, here and in the callees of a turn. A thread that wakes up finds none of the
    // code in the processor's cache and waits for each line of it, even for code that it jumps over.

    /// The steps of a turn. Inlined into the variants, so that the first one need not check `isMeasured`.
    @inline(__always)
    private func takeSteps(_ wait: Wait, hasWorked: Bool, isMeasured: Bool) throws(SystemError) {
        meter.counters.turns += 1
        if waker.isParked { unpark() }
        shared.waker.mailbox.take(into: &jobs.ready)
        // Mail, and jobs that exceeded the budget of the previous turn.
        let early = isMeasured && !jobs.ready.isEmpty ? now.nanoseconds : nil
        let worked = jobs.run() || hasWorked
        if let early { meter.noteTurn(since: early) }
        var polled = LoopMeter.unknown
        if poller.hasUndelivered {
            // A nested turn first delivers the events that the outer turn has fetched. Events that have arrived since
            // then are polled before any timer fires.
            poller.expectMore()
        } else {
            var mayBlock = !worked && !jobs.hasJobs
            var limit = Int64.max
            switch wait {
            case .wait: break
            case .poll: mayBlock = false
            case .upTo(let duration): limit = deadline(after: duration).nanoseconds
            }
            polled = try poll(mayBlock: mayBlock, limit, isMeasured: isMeasured)
        }
        let began = !isMeasured || polled != LoopMeter.unknown ? polled : now.nanoseconds
        // Determined before the events are delivered: a timer that becomes due meanwhile waits until the kernel has
        // been polled once more. Input that has arrived by then may cancel the timer.
        let due = dueTimers()
        let hasEvents = poller.hasUndelivered
        if hasEvents { deliverEvents() }
        if let due { try fire(due, afterEvents: hasEvents) }
        takeMail()
        _ = jobs.run()
        if isMeasured { meter.endOfTurn = meter.noteTurn(since: began) }
        if waker.isEmbedded && !jobs.hasJobs { try prepareForEmbedding() }
    }

    /// A turn whose handlers are measured, or that runs inside a measured handler or an inline job, or on a thread that
    /// may never drive its loop.
    @inline(never)
    private func takeInterruptedSteps(_ wait: Wait) throws(SystemError) {
        let wasNoting = depth == 1 && beginDriving()
        defer { if wasNoting { stopDriving() } }
        let isInsideInlineJob = jobs.isRunningInline
        let hasWorked = isInsideInlineJob && jobs.runInlineJobsEarly()
        let interrupted = depth > 1 ? meter.interruptHandler() : nil
        defer {
            meter.resumeHandler(after: interrupted)
            if isInsideInlineJob { jobs.resumeInlineJob() }
        }
        try takeSteps(wait, hasWorked: hasWorked, isMeasured: meter.measuresTurns)
    }

    @inline(__always)
    func checkWhetherItCanTurn() throws(SystemError) {
        if isForked || hasEnded { try refuseTurn() }
        if depth > 0 { try checkStack() }
    }

    @inline(never)
    private func refuseTurn() throws(SystemError) {
        guard isForked else { throw SystemError(.epollWait, EBADF, detail: "the loop has ended") }
        throw SystemError(.epollWait, EPERM, detail: "the loop belongs to the process that this one was forked from")
    }

    /// Checks the stack before a turn, or ready jobs, inside a handler. Each level takes stack, and peers may determine
    /// the number of levels, for example if the handlers of a server hang. Nesting too deep throws while there is still
    /// stack to handle the error.
    @inline(never)
    package func checkStack() throws(SystemError) {
        guard clinux_stack_is_low() else { return }
        let detail =
            "the loop is driven inside too many of its own handlers, \(depth) turns deep: the stack is nearly used"
        throw SystemError(.epollWait, ELOOP, detail: detail)
    }

    /// Whether the loop has ended.
    @inline(__always)
    package var hasEnded: Bool { shared.life.hasReached(.ending) }

    /// Whether anything that is added now would never be released.
    var hasReleasedAll: Bool { shared.life.hasReached(.released) }

    /// Keeps `object`, with the caller's reference, until it is exchanged or until the loop ends: one object for the
    /// layer above. A loop that has ended keeps nothing.
    /// - Returns: what was kept before, or `object` if the loop has ended; the reference is the caller's.
    package func exchangeAttachment(_ object: Unmanaged<AnyObject>?) -> Unmanaged<AnyObject>? {
        if hasEnded { return object }
        let before = attachment
        attachment = object
        return before
    }

    /// Tells loops apart where addresses do not.
    package var serial: Int { shared.life.serial }

    /// Whether a turn is under way: the caller is inside a handler, or inside other code that a turn calls.
    package var isBeingDriven: Bool { depth > 0 }

    /// Runs a turn that waits for other threads, for `limit` at most by the real clock, even if the loop's clock is
    /// virtual. For a loop that has no timer.
    package func awaitOtherThreads(forRealAtMost limit: Duration) throws(SystemError) {
        guard clock.isVirtual else { return try turn(.upTo(limit)) }
        waker.realLimit = CInt(clamping: limit.clampedNanoseconds / 1_000_000 + 1)
        defer { waker.realLimit = -1 }
        try turn(.wait)
    }

    /// Runs `body` as if in a turn.
    func whileDriven<Value>(_ body: () -> Value) -> Value {
        let outer = clinux_get_current_loop()
        clinux_set_current_loop(Unmanaged.passUnretained(self).toOpaque())
        depth += 1
        let wasNoting = depth == 1 && beginDriving()
        defer {
            if wasNoting { stopDriving() }
            depth -= 1
            clinux_set_current_loop(outer)
        }
        return body()
    }

    /// Whether a waiting caller must return because the loop's thread is to end.
    package var isStopping: Bool { shared.life.isAt(.stopping) }

    /// Whether a run must return: the innermost one, or all.
    var mustReturn: Bool { stopRequested || isStopping }

    /// The current moment of the loop's clock. Each access reads the clock, about 25 ns.
    public var now: LoopInstant { clock.now }

    // MARK: From other threads

    /// Any thread: posts `job` and takes over the caller's reference. Returns false once the loop has ended; the
    /// reference is then still the caller's.
    package func post(_ job: Unmanaged<Job>) -> Bool { shared.post(job) }

    /// Any thread: whether the calling thread has this loop as its current one, and the loop has not ended.
    var isCurrent: Bool { isCurrentOne && !hasEnded }

    /// Whether the calling thread has this loop as its current one, even if the loop has ended.
    private var isCurrentOne: Bool { clinux_get_current_loop() == Unmanaged.passUnretained(self).toOpaque() }

    /// Whether the calling thread may use the loop: it is the loop's own thread, and the loop has not ended. The caller
    /// must know that the loop exists. (Any other thread reads nothing that the owner could be changing.) A turn need
    /// not be under way: a timer may be cancelled between turns, too.
    package var isUsableHere: Bool { EventLoop.owns(self) && !hasEnded }

    /// Whether the calling thread may use the loop and also drives it, as far as is known.
    package var isDrivenHere: Bool { isUsableHere && isKnownToBeDriven }

    /// In every build: traps unless the calling thread owns the loop, or the loop has ended. For calls that are rare in
    /// comparison with their own cost, through handles that the compiler lets a task capture: see
    /// docs/guides/concurrency.md.
    func requireOwner(_ call: StaticString = #function) {
        precondition(
            EventLoop.owns(self) || hasEnded,
            "\(call) was called on a thread other than the loop's own; use loop.remote there")
    }

    /// In debug builds: traps unless the calling thread owns the loop, or the loop has ended.
    // Inlined, since it is nothing in release builds.
    @inlinable @inline(__always)
    package func assertOwner(_ call: StaticString = #function) {
        assert(
            isOwnedOrEnded,
            "\(call) was called on a thread other than the loop's own; use loop.remote there")
    }

    @usableFromInline
    var isOwnedOrEnded: Bool { EventLoop.owns(self) || hasEnded }
}
