import Synchronization

/// The reasons that keep a loop alive, and the work that may still wake it, as far as no other part of the loop stores
/// them.
///
/// A loop is *alive*, `EventLoop.isAlive`, while something is left that `run()` must not end before:
/// - ready jobs, mail, and events that have been fetched and not been delivered;
/// - timers, descriptors and signal watches, unless they are unreferenced;
/// - `holds`, which the program takes for work that comes back from elsewhere;
/// - `SharedWork.externalWork`: jobs of a pool and async tasks that other threads do for this loop.
///
/// A loop *can wake itself*, `EventLoop.canWakeItself`, if it is alive or could still be woken by something that it
/// knows of:
/// - timers, descriptors and signal watches that are unreferenced, except `backgroundSources`;
/// - `SharedWork.dispatchedJobs`: handlers that were given to a dispatcher which may run them or not;
/// - the work of `EventLoop.requestingLoop` on other threads, while this loop belongs to a pool's thread.
///
/// Otherwise only another thread that the loop does not know of can wake it, and a blocking wait may never end.
///
/// Handlers that wait for another thread's result keep the loop neither alive nor awake. They are counted, in
/// `waitingHandlers`, to be reported if the loop ends before them; `OutsideWaiters` says how the end finds them.
///
/// Invariant: used on the loop's thread only, except `SharedWork`.
@usableFromInline
struct KeepAlive {
    /// Handlers that wait on this loop.
    @usableFromInline var waitingHandlers = 0
    /// How many of the unreferenced timers and descriptors settle nothing that a program waits for, such as those of the
    /// idle connections of a pool.
    var backgroundSources = 0
    private(set) var holds: [Int: CallSite] = [:]
    private var lastHold = 0

    /// - Returns: what `release` takes. No other hold ever gets it.
    mutating func hold(_ callSite: CallSite) -> Int {
        lastHold += 1
        holds[lastHold] = callSite
        return lastHold
    }

    mutating func release(_ hold: Int) { holds[hold] = nil }
}

/// The counts that other threads change. They may do so in any order, but change a count before they notify the
/// loop.
@usableFromInline
struct SharedWork: ~Copyable {
    /// Work that other threads do for this loop: see `LoopRemote.beginExternalWork`.
    let externalWork = ExternalWorkCounts()
    /// Handlers that were given to dispatchers: see `LoopRemote.beginDispatchedJob`.
    let dispatchedJobs = Atomic<Int>(0)
    /// Whether the loop has been sent a job that only reports the end of external work.
    let isWakeJobPosted = Atomic(false)

    /// Whether other threads work for this loop.
    var awaitsExternalWork: Bool { externalWork.isUnderWay }

    /// Whether a dispatcher may run a handler of the loop.
    var hasDispatchedJobs: Bool { dispatchedJobs.load(ordering: .relaxed) > 0 }
}
