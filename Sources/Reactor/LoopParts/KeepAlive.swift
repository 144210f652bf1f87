import Synchronization

/// The reasons that keep a loop alive, and the work that may wake it, unless other parts store them.
///
/// A loop is *alive*, `EventLoop.isAlive`, while `run()` waits for any of:
/// - ready jobs, posted jobs and undelivered events;
/// - referenced timers, descriptors and signal watches;
/// - `holds`, taken by the program for results from elsewhere;
/// - `SharedWork.externalWork`: pool jobs and async tasks for this loop.
///
/// A loop *can wake itself*, `EventLoop.canWakeItself`, if it is alive or has:
/// - unreferenced timers, descriptors and signal watches, except `backgroundSources`;
/// - `SharedWork.dispatchedJobs`: handlers passed to a dispatcher, which may never run them;
/// - the work of `EventLoop.requestingLoop` on other threads, while this loop belongs to a pool's thread.
///
/// Without these, only a thread unknown to the loop can wake it, and a blocking wait may never end.
///
/// Handlers that wait for another thread's result have no influence. `waitingHandlers` counts them for a report at the
/// loop's end, when `CrossThreadWaiters` finds them.
///
/// Invariant: used on the loop's thread only, except `SharedWork`.
@usableFromInline
struct KeepAlive {
    @usableFromInline var waitingHandlers = 0
    /// Unreferenced sources that no promise in the program waits for, such as a pool's idle connections.
    var backgroundSources = 0
    var holds = NumberedList<CallSite>()
}

/// Counts that other threads change, always before they notify the loop.
@usableFromInline
struct SharedWork: ~Copyable {
    /// See `LoopRemote.beginExternalWork`.
    let externalWork = ExternalWorkCounts()
    /// See `LoopRemote.beginDispatchedJob`.
    let dispatchedJobs = Atomic<Int>(0)
    /// True while a job that only reports the end of external work is queued.
    let isWakeJobPosted = Atomic(false)
}
