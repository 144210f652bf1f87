import Glibc
import Synchronization

/// Where a loop stands between its first turn and its end.
///
/// Invariant: changed on the loop's thread only. A loop ends once: `hasEnded` before its mailbox is closed, `hasReleasedAll` when
/// nothing is left on it, and `Shared.isOver` last. Other threads may read `hasEnded` once they know from the mailbox, or from
/// the end of `Remote`, that it is true.
struct LoopLifecycle<Handle: AnyObject> {
    /// How many turns are under way, each inside a handler of the one before.
    var depth = 0
    /// Whether the innermost `run()` is to end.
    var stopRequested = false
    /// Whether every run is to end, since the loop's thread is ending: see `EventLoop.spawn`.
    var isStopping = false
    var hasEnded = false
    /// Whether the end has released everything, so that nothing would ever release what is added now.
    var hasReleasedAll = false
    /// Whether a loop inside this one has named it as its heir.
    var isHeir = false
    /// The loop's remote, until the loop ends. It holds the loop in turn.
    var remote: Handle?

    /// What other threads read of it.
    @usableFromInline
    struct Shared: ~Copyable {
        /// The `pthread_t` of the thread that drives the loop. Stored before the loop is first handed out.
        private let owner = Atomic<UInt>(pthread_self())
        let forkGeneration = ForkDetector.generation
        /// Tells loops apart where addresses do not: a new one may have the address of one that has ended.
        let serial = LoopSerials.next()
        /// Opened when nothing of the loop's end is left to do.
        let isOver = Latch()
        /// Whether a job of a Swift task has been reported that came after the end.
        let hasReportedTask = Atomic(false)

        var isOwnedByThisThread: Bool { pthread_equal(owner.load(ordering: .relaxed), pthread_self()) != 0 }

        /// The calling thread will drive the loop.
        func setOwner() { owner.store(pthread_self(), ordering: .relaxed) }

        /// Whether this process is a fork of the one that made the loop.
        var isForked: Bool { forkGeneration != ForkDetector.generation }
    }
}

private enum LoopSerials {
    private static let last = Atomic<Int>(0)

    static func next() -> Int { last.add(1, ordering: .relaxed).newValue }
}
