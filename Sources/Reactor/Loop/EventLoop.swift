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
/// Each thread has its own loop, created on first use; see `current`. Only that thread uses the loop and drives it,
/// with `run()`, `run(until:)` or `turn(_:)`. The loop is not `Sendable`; other threads use its `remote`. The loop
/// opens its descriptors when it first needs them; jobs alone need none.
///
/// A turn has these steps:
/// 1. Take the jobs that other threads submitted.
/// 2. Run the ready jobs.
/// 3. Poll the descriptors, waiting only if there was nothing to do.
/// 4. Deliver the events that have arrived.
/// 5. Fire the timers that were due at the poll. The jobs that a timer made ready run before the next timer fires.
/// 6. Take submitted jobs again, and run the jobs that these steps made ready.
///
/// Within a turn, jobs run in the order of queueing, timers by deadline, and events in the kernel's order.
public final class EventLoop {
    // `@exclusivity(unchecked)`: one thread accesses the fields, and no outside code runs while one changes. Dynamic
    // checks would slow down the passing of a result, and a turn, by a quarter.
    //
    // The fields that every turn uses come first, close together, because a waking thread has cold caches.
    @usableFromInline package let jobs: LoopJobs
    @exclusivity(unchecked) @usableFromInline var keepAlive = KeepAlive()
    @exclusivity(unchecked) @usableFromInline var crossThreadWaiters = CrossThreadWaiters()
    @usableFromInline let shared = SharedLoopState()
    /// References added by this thread, minus removed ones; see `SharedReferences`.
    @exclusivity(unchecked) @usableFromInline var ownReferences = 0
    @usableFromInline package let kernel: CountingSyscalls
    package let clock: LoopClock
    let isSpawned: Bool
    @usableFromInline let meter: LoopMeter
    let mainActor = MainActorQueue()
    let hooks = LoopHooks()
    @exclusivity(unchecked) var poller = Poller()
    @exclusivity(unchecked) var timers = TimerHeap()
    /// The last turn's clock reading for due timers.
    @exclusivity(unchecked) var lastDueMoment: Int64 = 0
    /// The clock's reading at this turn's poll; `LoopMeter.unknown` if not read since the wait.
    @exclusivity(unchecked) var timeOfPoll = LoopMeter.unknown
    @exclusivity(unchecked) var waker = LoopWaker()
    /// Turns in progress, nested by handlers.
    @exclusivity(unchecked) var depth = 0
    @exclusivity(unchecked) var stopRequested = false
    /// Not `nil` until the loop ends. The loop and the remote retain each other.
    @exclusivity(unchecked) var ownRemote: LoopRemote?
    /// An object of the layer above; see `exchangeAttachment`. Owned until the loop's end. Unmanaged, because reference
    /// counting took 7 % of a `hang`.
    @exclusivity(unchecked) var attachment: Unmanaged<AnyObject>?
    /// The observer, if this thread may never drive the loop.
    @exclusivity(unchecked) var undrivenWork: UndrivenWork?
    @exclusivity(unchecked) var signals = LoopSignals()
    @exclusivity(unchecked) var poolsWithoutThread: [ThreadPoolWorkers] = []
    @exclusivity(unchecked) var registrationFailures = RegistrationFailures()
    @exclusivity(unchecked) @usableFromInline var buffers = LoopBuffers()
    @exclusivity(unchecked) var ending = LoopEnding()
    @exclusivity(unchecked) var scope = LoopScope.thread
    /// True when the loop ends like a machine that loses power, without reports.
    @exclusivity(unchecked) var vanishes = false
    /// The loop for which this pool thread runs its job.
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
        crossThreadWaiters.releaseMemory()
        buffers.free()
    }

    // MARK: Life

    @inline(__always)
    package var hasEnded: Bool { shared.life.hasReached(.ending) }

    /// True when anything added from now on would never be released.
    var hasReleasedAll: Bool { shared.life.hasReached(.released) }

    /// Keeps the layer above's only `object`, with the caller's reference, until the next exchange or the loop's end.
    /// - Returns: the previous object, or `object` if the loop has ended; the caller owns the reference.
    package func exchangeAttachment(_ object: Unmanaged<AnyObject>?) -> Unmanaged<AnyObject>? {
        if hasEnded { return object }
        let before = attachment
        attachment = object
        return before
    }

    /// Identifies the loop where its address cannot.
    package var serial: Int { shared.life.serial }

    /// True when the caller is a handler, or other code inside a turn.
    package var isBeingDriven: Bool { depth > 0 }

    package var isHandlerInsideHandler: Bool { depth > 1 }

    /// The current time on the loop's clock. Each access reads the clock, which takes about 25 ns.
    public var now: LoopInstant {
        // Dates timers first: one started earlier is due no later than one computed from this reading.
        LoopInstant(nanoseconds: timers.hasUndated ? dateTimers() : clock.now.nanoseconds)
    }

    // MARK: From other threads

    /// Posts `job`, taking over the caller's reference. Returns false once the loop has ended; the caller then keeps
    /// the reference. Any thread.
    package func post(_ job: Unmanaged<Job>) -> Bool { shared.post(job) }

    /// `job` must be in no queue.
    @discardableResult
    package func post(_ job: Job) -> Bool {
        let job = Unmanaged<Job>.passRetained(job)
        guard !post(job) else { return true }
        job.release()
        return false
    }

    /// True when this is the calling thread's current loop and has not ended. Any thread.
    var isCurrent: Bool { clinux_get_current_loop() == Unmanaged.passUnretained(self).toOpaque() && !hasEnded }

    /// True on the loop's own thread until the loop ends. The caller must know that the loop exists. (Other threads
    /// read nothing that the owner could change.)
    package var isUsableHere: Bool { isOwnedByThisThread && !hasEnded }

    /// True when the loop is usable here, and either being driven or not known to be left undriven.
    package var isDrivenHere: Bool { isUsableHere && (isBeingDriven || undrivenWork?.isMain ?? true) }

    /// Traps in every build unless the calling thread owns the loop, or the loop's life is over. For costly calls
    /// through handles that the compiler lets a task capture: see docs/guides/async.md.
    func requireOwner(_ call: StaticString = #function) {
        precondition(isOwnedOrOver, "\(call) was called on a thread other than the loop's own; use loop.remote there")
    }

    /// Traps in debug builds unless the calling thread owns the loop, or the loop's life is over. Called first in every
    /// call that begins or ends an operation or changes a setting.
    // Inlined: empty in release builds.
    @inlinable @inline(__always)
    package func assertOwner(_ call: StaticString = #function) {
        assert(isOwnedOrOver, "\(call) was called on a thread other than the loop's own; use loop.remote there")
    }

    @usableFromInline
    var isOwnedOrOver: Bool { isOwnedByThisThread || shared.life.hasReached(.over) }
}

/// The scope that ends the loop.
enum LoopScope {
    case thread
    /// A call of `withLoop`. The surrounding loop, if any, ends later. It is retained, because the inner loop's object
    /// may outlive both.
    case function(within: EventLoop?)

    var surroundingLoop: EventLoop? {
        if case .function(let outer) = self { outer } else { nil }
    }
}
