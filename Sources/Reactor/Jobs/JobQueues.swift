/// The jobs that a loop will run or discard on its thread.
///
/// Invariant: used on the loop's thread only. A job is in at most one of the queues, which owns it; no queue calls a
/// job while it is itself being changed. The ready queue comes first: every turn looks at it.
@usableFromInline
struct JobQueues: ~Copyable {
    /// Jobs that turns run, in the order in which they were queued.
    @usableFromInline var ready = JobQueue()
    /// Jobs that have run, to be used again.
    @usableFromInline var spare = SpareJobs()
    /// Jobs that run in the same turn, when no job is ready any more; see `EventLoop.enqueueAtEndOfTurn`.
    var endOfTurn = JobQueue()
    /// For how many batches of ready jobs they have waited.
    var batchesBeforeEnd: UInt8 = 0
    /// Jobs that run at once, but one after the other; see `EventLoop.runInline`.
    var inline = Trampoline()
    /// Whether the jobs of the last batch were long, so that the clock is read more often; see `EventLoop.drainReady`.
    var hasLongJobs = false
    /// Jobs that never run, to be released one after the other; see `EventLoop.discard`.
    var discarded = Trampoline()
    /// The operation that the running inline job has interrupted, if it must be completed before a turn; see
    /// `EventLoop.runInline`.
    var interrupted: Interrupted?
    /// Jobs of another class, to be used again.
    @usableFromInline var spareNodes = SpareJobs()

    /// Whether a turn has a job to run.
    @inline(__always)
    var hasJobs: Bool { !ready.isEmpty || !endOfTurn.isEmpty }

    // The context is on the stack of the call of `runInline` that has set the field. The call resets the field before
    // it returns.
    struct Interrupted {
        let context: UnsafeMutableRawPointer
        let complete: Completion
    }

    /// A C function, so that a loop can keep it without counting references.
    typealias Completion = @convention(c) (UnsafeMutableRawPointer) -> Void
}
