import CLinux
import Glibc
import Synchronization

/// The state of a loop from its creation to its end.
///
/// Invariant: changed on the loop's thread only. A loop ends once: `hasEnded` before its mailbox is closed,
/// `hasReleasedAll` when nothing is left on it, and `Shared.isOver` last. Other threads may read `hasEnded` once they
/// know from the mailbox, or from the end of `Remote`, that it is true.
struct LoopLifecycle<Handle: AnyObject> {
    /// How many turns are under way, each inside a handler of the one before.
    var depth = 0
    /// Whether the innermost `run()` must end.
    var stopRequested = false
    /// Whether every run must end because the loop's thread is ending: see `EventLoop.spawn`.
    var isStopping = false
    var hasEnded = false
    /// Whether the end has released everything, so that anything added now would never be released.
    var hasReleasedAll = false
    /// The loop's remote, until the loop ends. The remote retains the loop in turn.
    var remote: Handle?
    /// An object that the layer above keeps with the loop; see `EventLoop.exchangeAttachment`. Owned; released by the
    /// end of the loop at the latest. Unmanaged, because counting references took 7 % of a `hang`.
    var attachment: Unmanaged<AnyObject>?

    /// The part of the state that other threads read.
    @usableFromInline
    struct Shared: ~Copyable {
        /// The `pthread_t` of the thread that drives the loop. Stored before the loop is first handed out.
        private let owner = Atomic<UInt>(clinux_this_thread())
        private let fork = ForkMark()
        /// Distinguishes loops where addresses do not: a new loop may have the address of one that has ended.
        let serial = LoopSerials.next()
        /// Opened when the end of the loop is complete.
        let isOver = Latch()
        /// Whether a Swift job that arrived after the end has been reported.
        let hasReportedTask = Atomic(false)

        var isOwnedByThisThread: Bool { owner.load(ordering: .relaxed) == clinux_this_thread() }

        /// Called on the thread that will drive the loop.
        func setOwner() { owner.store(clinux_this_thread(), ordering: .relaxed) }

        /// Whether this process is a fork of the one that created the loop.
        var isForked: Bool { fork.isForked }
    }
}

private enum LoopSerials {
    private static let last = Atomic<Int>(0)

    static func next() -> Int { last.add(1, ordering: .relaxed).newValue }
}
