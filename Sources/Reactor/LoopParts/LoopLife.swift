import CLinux
import ReactorLibc
import Synchronization

/// The stages of a loop's life, in order. A loop may skip stages, and never goes back.
enum LoopStage: UInt8 {
    /// Turns run, and jobs are accepted.
    case running
    /// Every run must end, because the loop's thread is ending: see `EventLoop.spawn`.
    case stopping
    /// No turn begins any more. Everything that waits on the loop is being released, and the mailbox is closed.
    case ending
    /// The values of `LoopLocal` are being released, and none is kept any more.
    case releasingLocals
    /// Nothing is left on the loop. Anything added now would never be released, and is therefore released at once.
    case released
    /// The descriptors are closed. No thread changes the loop any more, apart from `LoopLife.cleanups`.
    case over
}

/// The scope that a loop lives in, and ends with.
enum LoopScope {
    case thread
    /// The function that is passed to `withLoop`. The loop around it, if the thread has one, ends later; retained, since
    /// the inner loop's object may be kept for longer than both.
    case function(within: EventLoop?)

    /// The surrounding loop on the same thread, if there is one.
    var surroundingLoop: EventLoop? {
        if case .function(let outer) = self { outer } else { nil }
    }
}

/// The owner of a loop, and the stage of its life.
///
/// Invariant: any thread may read it. Only the loop's own thread changes it, and the stage never goes back.
@usableFromInline
struct LoopLife: ~Copyable {
    /// The `pthread_t` of the thread that drives the loop. Stored before the loop is first handed out.
    private let owner = Atomic<UInt>(clinux_this_thread())
    private let fork = ForkMark()
    // The number of the stage: one comparison tells whether the loop has reached a stage, where an enum would be
    // decoded.
    private let current = Atomic(LoopStage.running.rawValue)
    /// Distinguishes loops where addresses do not: a new loop may reuse the address of one that has ended.
    let serial = LoopLife.lastSerial.add(1, ordering: .relaxed).newValue
    private static let lastSerial = Atomic(0)
    /// Opened when no handler waits on the loop any more, just before it is `released`: others may learn of the end.
    let ended = Latch()
    /// Opened when the loop's thread uses nothing of the loop any more. The bodies are cleanups that other threads have
    /// left to that thread since it began to end the loop.
    let cleanups = Latch()
    /// Opened when the loop's life is over.
    let isOver = Latch()
    /// Whether a Swift job that arrived after the end has been reported.
    let hasReportedTask = Atomic(false)

    @inline(__always)
    func hasReached(_ stage: LoopStage) -> Bool { current.load(ordering: .relaxed) >= stage.rawValue }

    func isAt(_ stage: LoopStage) -> Bool { current.load(ordering: .relaxed) == stage.rawValue }

    /// Called on the loop's thread. Does nothing if the loop has passed the stage.
    func advance(to stage: LoopStage) {
        if !hasReached(stage) { current.store(stage.rawValue, ordering: .releasing) }
    }

    var isOwnedByThisThread: Bool { owner.load(ordering: .relaxed) == clinux_this_thread() }

    /// Called on the thread that will drive the loop.
    func setOwner() { owner.store(clinux_this_thread(), ordering: .relaxed) }

    /// Whether this process is a fork of the one that created the loop.
    var isForked: Bool { fork.isForked }
}
