import CLinux
import Glibc
import Synchronization

/// A single-threaded event loop over epoll: ready jobs, timers, descriptors, signals, and a mailbox for other threads.
///
/// Every thread has one, made when it is first asked for; see `current`. It is driven by its own thread, with
/// `run()`, `run(until:)` or `turn(_:)`, and used by its own thread: it is not `Sendable`, and `remote` is its door for
/// all others. Its descriptors are opened when they are first needed; jobs alone need none.
///
/// One turn: jobs that are ready; then descriptors are asked, waiting only if there was nothing to do; then due
/// timers; then the events that came; then the jobs that all of these made ready. Within a turn jobs run in the
/// order in which they were queued, timers in the order of their deadlines, events in the kernel's order.
public final class EventLoop {
    // `@exclusivity(unchecked)`: one thread, and nothing is called out to while a field is being changed; the dynamic
    // checks for these few fields cost a quarter of the instructions of a promise's hop.
    @exclusivity(unchecked) @usableFromInline var ready = ReadyQueue()
    @exclusivity(unchecked) @usableFromInline package private(set) var waitingHandlers = 0
    @exclusivity(unchecked) private var inlineJobs = Trampoline()
    @exclusivity(unchecked) private var discardedJobs = Trampoline()
    @usableFromInline let mailbox = Mailbox()
    package let kernel: Kernel
    package let clock: LoopClock

    @exclusivity(unchecked) var poller = Poller()
    @exclusivity(unchecked) var timers = TimerQueue()
    @exclusivity(unchecked) var counters = LoopMetrics()
    var signals = LoopSignals()
    private var holds = 0
    /// Work that other threads do for this loop: see `Remote.beginOutsideWork`.
    let outsideWork = Atomic<Int>(0)
    /// Whether a job is on its way here that only says that such work has ended.
    let isNudged = Atomic(false)
    /// Whom the job of a pool works for that this thread is at.
    var patron: Remote?
    private var stopRequested = false
    package internal(set) var hasEnded = false
    // The thread that drives the loop; set before the loop is first handed out.
    var owner = pthread_self()

    var timerDescriptor: CInt = -1
    // The moment for which the timerfd is armed; `.max` when it is not.
    var armedDeadline = Int64.max
    // Read by other threads, after they have found the mailbox parked; written before it is.
    let wakeDescriptor = Atomic<CInt>(-1)
    // How often another thread found us parked: each has written the eventfd, or is about to.
    var wakesOwed: UInt64 = 0
    // Another event loop waits for this one, by `fileDescriptor`: the mailbox is left parked between turns, so that
    // mail shows there.
    var isCarried = false
    // We have parked the mailbox and not yet looked whether somebody found it so.
    var isParked = false

    // Handlers that were left behind when the loop ended; each keeps one count of this object alive in common.
    let orphans = Atomic<Int>(0)
    private let forkGeneration = Fork.generation
    @exclusivity(unchecked) private var buffer: UnsafeMutableRawBufferPointer?

    /// Tells loops apart where addresses do not: a new one may have the address of one that has ended.
    package let serial = EventLoop.serials.add(1, ordering: .relaxed).newValue
    private static let serials = Atomic<Int>(0)

    /// How many jobs run before descriptors and timers are looked at again, so that a chain of jobs that feeds
    /// itself starves neither. Each is some 100 ns of work, which makes a batch 0.1 ms.
    private static var jobBudget: Int { 1024 }
    /// The same in nanoseconds, for jobs that are long; looked at every 32 jobs.
    private static var timeBudget: Int64 { 2_000_000 }

    /// Whether to take the time of every job, for `Metrics.longestHandler`. One reading of the clock a job, about
    /// 25 ns; off by default.
    public var measuresHandlers = false

    package init(clock: LoopClock = .monotonic, syscalls: Syscalls = Syscalls()) {
        self.clock = clock
        kernel = Kernel(syscalls)
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

    /// The counters, as they stand now.
    public var metrics: Metrics {
        var snapshot = counters
        for call in SystemCall.allCases where kernel[call] > 0 { snapshot.systemCalls[call] = kernel[call] }
        return snapshot
    }

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
    ///   that made the loop (`EPERM` of `epoll_wait`).
    @available(*, noasync, message: "an async function must not block its thread; it has no loop of its own to drive")
    public func run() throws(SystemError) {
        while !stopRequested && isAlive { try turn(.wait) }
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
            guard !stopRequested && isAlive else { return false }
            try turn(.wait)
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
        guard !isForked else {
            throw SystemError(
                .epollWait, EPERM, detail: "the loop belongs to the process that this one was forked from")
        }
        guard !hasEnded else { throw SystemError(.epollWait, EBADF, detail: "the loop has ended") }
        assertOwner()
        // A loop of `withLoop` may be carried by the one around it, or the other way round.
        let outer = clinux_get_current_loop()
        clinux_set_current_loop(Unmanaged.passUnretained(self).toOpaque())
        defer { clinux_set_current_loop(outer) }
        // Inside an inline job: those that wait behind it must not wait for its return.
        let isInsideInlineJob = inlineJobs.isRunning
        let ranInline = isInsideInlineJob && runInlineJobs()
        defer { if isInsideInlineJob { inlineJobs.resume() } }
        counters.turns += 1
        if isParked { unpark() }
        mailbox.take(into: &ready)
        let worked = drain() || ranInline
        var limit = Int64.max
        if case .upTo(let duration) = wait { limit = now.advanced(by: duration).nanoseconds }
        // A nested turn first delivers what the outer one has fetched.
        if !poller.hasUndelivered { try poll(mayBlock: !worked && ready.isEmpty && wait != .poll, limit) }
        fireTimers()
        deliverEvents()
        takeMail()
        _ = drain()
        if isCarried && ready.isEmpty { try rest() }
    }

    /// Whether anything is left that the loop waits for.
    public var isAlive: Bool {
        // First: what such work has posted to us before it ended must be seen in the mailbox then.
        awaitsOutsideWork || !ready.isEmpty || !mailbox.isEmpty || timers.referenced > 0 || poller.referenced > 0
            || poller.hasUndelivered || holds > 0 || signals.hasReferenced
    }

    /// Whether anything on this loop, referenced or not, or work that it knows of, could still make something happen; if not,
    /// only another thread can.
    package var canWakeItself: Bool {
        isAlive || !timers.isEmpty || poller.waiting > 0 || !signals.handlers.isEmpty || patronAwaitsOthers
    }

    // MARK: Jobs

    /// Runs `job` on this loop after all jobs that are ready already: in this turn if one is under way, otherwise in
    /// the next.
    public func enqueue(_ job: @escaping () -> Void) { enqueue(ClosureJob(job)) }

    /// The same for a job object. It must not stand in a queue already.
    package func enqueue(_ job: Job) {
        assertOwner()
        ready.append(.passRetained(job))
    }

    /// The present moment of the loop's clock. Read anew each time, about 25 ns.
    public var now: Instant { clock.now }

    /// Keeps the loop alive until it is released, for work that comes back from elsewhere: another thread, an
    /// async task.
    public func hold() -> Hold {
        assertOwner()
        holds += 1
        return Hold(self)
    }

    /// A reason to stay alive; see `EventLoop.hold()`. Ends with `release()` or when the last reference to it goes.
    public final class Hold {
        private var loop: EventLoop?

        fileprivate init(_ loop: EventLoop) { self.loop = loop }

        deinit { release() }

        /// Lets the loop end as far as this hold is concerned. Again: nothing happens.
        public func release() {
            loop?.holds -= 1
            loop = nil
        }
    }

    /// Runs ready jobs, at most a budget of them. True if there was one.
    private func drain() -> Bool {
        guard !ready.isEmpty else { return false }
        var left = Self.jobBudget
        var started = measuresHandlers ? clock.now.nanoseconds : 0
        var deadline = Int64.max
        while left > 0, let job = ready.popFirst() {
            left -= 1
            job._withUnsafeGuaranteedRef { $0.runAndRelease() }
            if measuresHandlers {
                let ended = clock.now.nanoseconds
                counters.longestHandlerNanoseconds = max(counters.longestHandlerNanoseconds, ended - started)
                started = ended
            }
            guard left & 31 == 0 else { continue }
            let now = clock.now.nanoseconds
            if deadline == .max { deadline = now &+ Self.timeBudget }
            if now > deadline { break }
        }
        counters.jobs += Self.jobBudget - left
        return true
    }

    /// The first part of a turn alone: ready jobs, within the budget of a turn.
    package func runReadyJobs() {
        assertOwner()
        let isInsideInlineJob = inlineJobs.isRunning
        if isInsideInlineJob {
            runInlineJobs()
            inlineJobs.resume()
        }
        takeMail()
        _ = drain()
    }

    /// Whether anything waits on this loop that is not ready.
    var hasWaiters: Bool {
        waitingHandlers > 0 || !timers.isEmpty || poller.waiting > 0 || !signals.handlers.isEmpty
    }

    // MARK: Promise handlers, for the layer above

    /// Runs `job`, and gives up the caller's reference: at once, or after the one that is being run so.
    package func runInline(_ job: Unmanaged<Job>) {
        if inlineJobs.begin(job) { runInlineJobs() }
    }

    /// Answers whether there was one.
    @discardableResult
    private func runInlineJobs() -> Bool {
        var hasRun = false
        while let job = inlineJobs.popFirst() {
            job._withUnsafeGuaranteedRef { $0.runAndRelease() }
            hasRun = true
        }
        return hasRun
    }

    /// Discards `job`, which was refused by a loop that has ended, likewise; not one inside the other, since a job that
    /// goes may take the next with it.
    package func discard(_ job: Unmanaged<Job>) {
        guard discardedJobs.begin(job) else { return }
        while let job = discardedJobs.popFirst() { job._withUnsafeGuaranteedRef { $0.discardAndRelease() } }
    }

    /// A handler on this loop begins to wait for a promise, or has come to its end.
    @inlinable @inline(__always)
    package func handlerWaits() { waitingHandlers &+= 1 }
    @inlinable @inline(__always)
    package func handlerWaitsNoMore() { waitingHandlers &-= 1 }

    /// Queues a job and takes over the caller's reference to it.
    @inlinable @inline(__always)
    package func enqueueOwned(_ job: Unmanaged<Job>) { ready.append(job) }

    /// Queues what other threads have posted.
    @inlinable @inline(__always)
    package func takeMail() { if !mailbox.isEmpty { collectMail() } }

    @usableFromInline
    func collectMail() {
        if isParked { unpark() }
        mailbox.take(into: &ready)
    }

    // MARK: Timers

    /// The loop's time when it last looked for due timers: exact enough for the idle time of connections, which is
    /// itself watched by timers, and free.
    @inlinable
    package var turnTime: Instant {
        @inline(__always) get { timeOfTurn }
    }
    @exclusivity(unchecked) @usableFromInline var timeOfTurn = Instant(nanoseconds: 0)

    private func fireTimers() {
        guard !timers.isEmpty else { return }
        timeOfTurn = self.now
        let now = timeOfTurn.nanoseconds
        if armedDeadline <= now { armedDeadline = .max }
        let horizon = timers.horizon
        while let job = timers.popDue(now, startedBefore: horizon) {
            counters.timersFired += 1
            job.run()
        }
    }

    /// The earliest deadline of a timer, `nil` without one: how long another event loop that carries this one may
    /// wait. See `fileDescriptor`.
    public var nextDeadline: Instant? { timers.nextDeadline.map(Instant.init(nanoseconds:)) }

    // MARK: Descriptors, for the layers above

    package func setInterest(_ interest: Interest, of fd: CInt, handler: (any ReadinessHandler)?) throws(SystemError) {
        assertOwner()
        try openPoller()
        if isForked && !interest.isEmpty {
            throw SystemError(.epollControl, EPERM, detail: "the loop belongs to the parent process")
        }
        try poller.setInterest(interest, of: fd, handler: handler, kernel)
    }

    package func setReferenced(_ isReferenced: Bool, of fd: CInt) { poller.setReferenced(isReferenced, of: fd) }

    /// Before `fd` is closed.
    package func forget(_ fd: CInt) {
        // A loop that has ended has forgotten everything; its connections may be let go by other threads.
        if hasEnded { return }
        assertOwner()
        // In a forked child the registration is the parent's, and must stay.
        poller.forget(fd, isForked ? nil : kernel)
    }

    func isHandler(_ handler: any ReadinessHandler, of fd: CInt) -> Bool { poller.handler(of: fd) === handler }

    private var isForked: Bool { forkGeneration != Fork.generation }

    /// 64 KiB into which everything is read before its exact bytes are copied out, so that an idle connection holds
    /// no buffer. Valid until the next call that reads on this loop.
    package var scratch: UnsafeMutableRawBufferPointer {
        if let buffer { return buffer }
        let fresh = UnsafeMutableRawBufferPointer.allocate(byteCount: 65536, alignment: 64)
        buffer = fresh
        return fresh
    }

    /// The same for somebody who lends it to foreign code: nobody else reads into it until it is given back.
    package func borrowScratch() -> UnsafeMutableRawBufferPointer {
        let borrowed = scratch
        buffer = nil
        return borrowed
    }

    package func giveBack(_ borrowed: UnsafeMutableRawBufferPointer) {
        // That code may have turned the loop, which has made itself another one then.
        if buffer == nil { buffer = borrowed } else { borrowed.deallocate() }
    }

    /// Tells one turn from the next.
    package var turnNumber: Int { counters.turns }

    // MARK: From other threads

    /// Any thread: hands over the caller's reference to `job`; false, and the reference still the caller's, once the loop
    /// has ended.
    package func post(_ job: Unmanaged<Job>) -> Bool {
        switch mailbox.post(job) {
        case .delivered: return true
        case .deliveredToSleeper:
            // The loop does not close this descriptor before it has seen our write: see `close`.
            var one: UInt64 = 1
            _ = write(wakeDescriptor.load(ordering: .acquiring), &one, 8)
            return true
        case .refused: return false
        }
    }

    /// Whether the calling thread may use the loop, which it must know to be there: it is the loop's own, and the loop has
    /// not ended. (Who is not asks nothing that the owner could be changing.)
    package var isUsableHere: Bool { EventLoop.owns(self) && !hasEnded }

    /// In debug builds: this is the thread that the loop belongs to.
    package func assertOwner(_ call: StaticString = #function) {
        assert(
            EventLoop.owns(self), "\(call) was called on another thread than the loop's own; use loop.remote there")
    }
}
