import Synchronization

/// The reasons that keep a loop alive, and the work that may still wake it, unless another part of the loop stores
/// them.
///
/// A loop is *alive*, `EventLoop.isAlive`, while `run()` has something left to wait for:
/// - ready jobs, mail, and fetched events that have not been delivered;
/// - timers, descriptors and signal watches, unless they are unreferenced;
/// - `holds`, which the program takes for results that come from elsewhere;
/// - `SharedWork.externalWork`: jobs of a pool and async tasks that other threads do for this loop.
///
/// A loop *can wake itself*, `EventLoop.canWakeItself`, if it is alive or could still be woken by something that it
/// knows of:
/// - timers, descriptors and signal watches that are unreferenced, except `backgroundSources`;
/// - `SharedWork.dispatchedJobs`: handlers passed to a dispatcher, which may run them or not;
/// - the work of `EventLoop.requestingLoop` on other threads, while this loop belongs to a pool's thread.
///
/// Otherwise only a thread that the loop does not know of can wake it, and a blocking wait may never end.
///
/// Handlers that wait for another thread's result keep the loop neither alive nor awake. They are counted, in
/// `waitingHandlers`, to be reported if the loop ends before them; the end finds them in `OutsideWaiters`.
///
/// Invariant: used on the loop's thread only, except `SharedWork`.
@usableFromInline
struct KeepAlive {
    /// Handlers that wait on this loop.
    @usableFromInline var waitingHandlers = 0
    /// The number of unreferenced timers and descriptors that no program's promise waits for, such as those of a pool's
    /// idle connections.
    var backgroundSources = 0
    var holds = NumberedList<CallSite>()
}

/// The counts that other threads change, in any order, but always before they notify the loop.
@usableFromInline
struct SharedWork: ~Copyable {
    /// Work that other threads do for this loop: see `LoopRemote.beginExternalWork`.
    let externalWork = ExternalWorkCounts()
    /// Handlers that were given to dispatchers: see `LoopRemote.beginDispatchedJob`.
    let dispatchedJobs = Atomic<Int>(0)
    /// Whether a job that only reports the end of external work is on its way to the loop.
    let isWakeJobPosted = Atomic(false)
}
