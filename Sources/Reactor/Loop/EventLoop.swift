import CLinux
import ReactorLibc
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
/// 1. Take the jobs that other threads have submitted.
/// 2. Run the ready jobs.
/// 3. Poll the descriptors, waiting only if there was nothing to do.
/// 4. Deliver the events that have arrived.
/// 5. Fire the timers that were due when the descriptors were polled, and run the jobs that one has made ready before
///    the next one fires.
/// 6. Take submitted jobs again, and run those that these steps have made ready.
///
/// Within a turn, jobs run in the order in which they were queued, timers in the order of their deadlines, and events
/// in the kernel's order.
public final class EventLoop {
    // `@exclusivity(unchecked)`: only one thread accesses the fields, and no outside code is called while a field is
    // being changed. The dynamic checks for these fields cost a quarter of the instructions of a handler's hop, and as
    // much of a turn.
    //
    // The fields that every turn reads come first, close together: a thread that wakes up has none of them in the
    // cache.
    @usableFromInline package let jobs: LoopJobs
    @exclusivity(unchecked) @usableFromInline var keepAlive = KeepAlive()
    @exclusivity(unchecked) @usableFromInline var outsideWaiters = OutsideWaiters()
    @usableFromInline let shared = SharedLoopState()
    /// The references that this thread has counted, less those that it has ended; see `SharedReferences`.
    @exclusivity(unchecked) @usableFromInline var ownReferences = 0
    @usableFromInline package let kernel: CountingSyscalls
    package let clock: LoopClock
    /// Whether `EventLoop.spawn` has started the loop's thread.
    let isSpawned: Bool
    @usableFromInline let meter: LoopMeter
    let mainActor = MainActorQueue()
    let hooks = LoopHooks()
    @exclusivity(unchecked) var poller = Poller()
    @exclusivity(unchecked) var timers = TimerHeap()
    /// The clock reading with which the last turn looked for due timers.
    @exclusivity(unchecked) var lastDueMoment: Int64 = 0
    /// The clock reading from this turn's poll, for its due timers; `LoopMeter.unknown` if there is none, or if the
    /// loop has waited since.
    @exclusivity(unchecked) var timeOfPoll = LoopMeter.unknown
    @exclusivity(unchecked) var waker = LoopWaker()
    /// The number of turns in progress, each inside a handler of the previous one.
    @exclusivity(unchecked) var depth = 0
    /// Whether the innermost `run()` must end.
    @exclusivity(unchecked) var stopRequested = false
    /// The loop's remote, until the loop ends. The remote retains the loop in turn.
    @exclusivity(unchecked) var ownRemote: LoopRemote?
    /// An object that the layer above keeps with the loop; see `exchangeAttachment`. Owned; released by the end of the
    /// loop at the latest. Unmanaged, because counting references took 7 % of a `hang`.
    @exclusivity(unchecked) var attachment: Unmanaged<AnyObject>?
    /// The observer of the loop's thread, if the thread may never drive the loop.
    @exclusivity(unchecked) var unrunWork: UnrunWork?
    @exclusivity(unchecked) var signals = LoopSignals()
    /// The pools for which the loop tries to start a thread.
    @exclusivity(unchecked) var poolsWithoutThread: [ThreadPoolWorkers] = []
    @exclusivity(unchecked) var registrationFailures = RegistrationFailures()
    @exclusivity(unchecked) @usableFromInline var buffers = LoopBuffers()
    @exclusivity(unchecked) var ending = LoopEnding()
    @exclusivity(unchecked) var scope = LoopScope.thread
    /// Whether the loop ends like a machine that loses power: nothing is reported.
    @exclusivity(unchecked) var vanishes = false
    /// The loop on whose behalf this thread, which belongs to a pool, runs its current job.
    @exclusivity(unchecked) var requestingLoop: LoopRemote?

    package init(clock: LoopClock = .monotonic, syscalls: Syscalls = Syscalls(), name: String? = nil) {
        self.clock = clock
        isSpawned = name != nil
        if isSpawned { signals.taken = 0 }
        meter = LoopMeter(clock)
        jobs = LoopJobs(meter, clock)
        kernel = CountingSyscalls(syscalls)
        ownRemote = LoopRemote(of: self, name: name)
    }

    deinit {
        outsideWaiters.releaseMemory()
        buffers.free()
    }

    // MARK: Life

    @inline(__always)
    package var hasEnded: Bool { shared.life.hasReached(.ending) }

    /// Whether anything added from now on would never be released.
    var hasReleasedAll: Bool { shared.life.hasReached(.released) }

    /// Keeps `object`, with the caller's reference, until it is exchanged or until the loop ends: one object for the
    /// layer above. A loop that has ended keeps nothing.
    /// - Returns: the previous object, or `object` if the loop has ended; the caller owns the reference.
    package func exchangeAttachment(_ object: Unmanaged<AnyObject>?) -> Unmanaged<AnyObject>? {
        if hasEnded { return object }
        let before = attachment
        attachment = object
        return before
    }

    /// Distinguishes loops where addresses do not.
    package var serial: Int { shared.life.serial }

    /// Whether a turn is in progress: the caller is inside a handler, or inside other code that a turn calls.
    package var isBeingDriven: Bool { depth > 0 }

    /// True when the caller is inside a handler that a turn of another handler has called.
    package var isHandlerInsideHandler: Bool { depth > 1 }

    /// The current moment of the loop's clock. Each access reads the clock, about 25 ns.
    public var now: LoopInstant {
        // A timer that was started earlier is due no later than one computed from this reading.
        LoopInstant(nanoseconds: timers.hasUndated ? dateTimers() : clock.now.nanoseconds)
    }

    // MARK: From other threads

    /// Any thread: posts `job` and takes over the caller's reference. Returns false once the loop has ended; the
    /// reference is then still the caller's.
    package func post(_ job: Unmanaged<Job>) -> Bool { shared.post(job) }

    /// As `post(_:)` of a counted reference; `job` must be in no queue.
    @discardableResult
    package func post(_ job: Job) -> Bool {
        let job = Unmanaged<Job>.passRetained(job)
        guard !post(job) else { return true }
        job.release()
        return false
    }

    /// Any thread: whether the calling thread has this loop as its current one, and the loop has not ended.
    var isCurrent: Bool { clinux_get_current_loop() == Unmanaged.passUnretained(self).toOpaque() && !hasEnded }

    /// Whether the calling thread may use the loop: it is the loop's own thread, and the loop has not ended. The caller
    /// must know that the loop exists. (Any other thread reads nothing that the owner could be changing.)
    package var isUsableHere: Bool { isOwnedByThisThread && !hasEnded }

    /// Whether the calling thread may use the loop, and drives it or is not known to leave it undriven.
    package var isDrivenHere: Bool { isUsableHere && (isBeingDriven || unrunWork?.isMain ?? true) }

    /// In every build: traps unless the calling thread owns the loop, or the loop's life is over. For calls whose own
    /// cost exceeds the check, through handles that the compiler lets a task capture: see docs/guides/async.md.
    func requireOwner(_ call: StaticString = #function) {
        precondition(isOwnedOrOver, "\(call) was called on a thread other than the loop's own; use loop.remote there")
    }

    /// In debug builds: traps unless the calling thread owns the loop, or the loop's life is over. Whatever begins an
    /// operation of a handle, ends it or changes a setting calls this first; what only asks need not.
    // Inlined: empty in release builds.
    @inlinable @inline(__always)
    package func assertOwner(_ call: StaticString = #function) {
        assert(isOwnedOrOver, "\(call) was called on a thread other than the loop's own; use loop.remote there")
    }

    @usableFromInline
    var isOwnedOrOver: Bool { isOwnedByThisThread || shared.life.hasReached(.over) }
}
