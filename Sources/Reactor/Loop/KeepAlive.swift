import Synchronization

/// What keeps a loop alive, and what may still wake it, as far as no other part of the loop knows.
///
/// A loop is *alive*, `EventLoop.isAlive`, while something is left that `run()` must not end before:
/// - ready jobs, mail, and events that have been fetched and not been delivered;
/// - timers, descriptors and signal watches, unless they are unreferenced;
/// - `holds`, which the program takes for work that comes back from elsewhere;
/// - `Shared.externalWork`: jobs of a pool and async tasks that other threads do for this loop.
///
/// A loop *can wake itself*, `EventLoop.canWakeItself`, if it is alive or something could still happen by which it knows:
/// - timers, descriptors and signal watches that are unreferenced;
/// - `Shared.dispatchedJobs`: handlers that were given to a dispatcher which may run them or not;
/// - the work of `requestingLoop` on other threads, while this loop is that of a pool's thread.
/// Otherwise only another thread that the loop does not know of can wake it, and a blocking wait may never end.
///
/// What keeps it neither alive nor awake: handlers that wait for another thread's result. They are counted, in
/// `waitingHandlers`, to be reported if the loop ends before them; those that are left then are `Shared.outstandingHandlers`,
/// which keep the object of the ended loop, and its `Shared.heir` releases what they captured.
///
/// Invariant: used on the loop's thread only, except `Shared`. `Handle` is `EventLoop.Remote`, which is not named here: the parts
/// of a loop know nothing of the loop.
@usableFromInline
struct KeepAlive<Handle: AnyObject> {
    /// Handlers that wait on this loop. Those that the mailbox has refused at the end take it below zero.
    @usableFromInline var waitingHandlers = 0
    /// The loop for whose work the job of a pool runs that this thread is at.
    var requestingLoop: Handle?
    private(set) var holds: [Int: CallSite] = [:]
    private var lastHold = 0

    /// - Returns: what `release` takes. No other hold ever gets it.
    mutating func hold(_ origin: CallSite) -> Int {
        lastHold += 1
        holds[lastHold] = origin
        return lastHold
    }

    mutating func release(_ hold: Int) { holds[hold] = nil }

    /// The counts that other threads change, in any order: first the count, then what the loop looks at.
    @usableFromInline
    struct Shared: ~Copyable {
        /// Work that other threads do for this loop: see `Remote.beginExternalWork`.
        let externalWork = ExternalWorkCounts()
        /// Handlers that dispatchers have: see `Remote.beginDispatchedJob`.
        let dispatchedJobs = Atomic<Int>(0)
        /// Whether a job is on its way to the loop that only tells it that external work has ended.
        let isWakeJobPosted = Atomic(false)
        /// Handlers that were left behind when the loop ended; together they hold one reference to the loop.
        let outstandingHandlers = Atomic<Int>(0)
        /// The loop around this one, which releases what handlers leave behind: see `EventLoop.nameHeir`.
        let heir = AtomicLazyReference<Handle>()

        /// Whether other threads work for this loop.
        var awaitsExternalWork: Bool { externalWork.isUnderWay }

        /// Whether a dispatcher may run a handler of the loop.
        var hasDispatchedJobs: Bool { dispatchedJobs.load(ordering: .relaxed) > 0 }
    }
}
