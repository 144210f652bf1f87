import CLinux
import ReactorLibc
import Synchronization

/// The stages of a loop's life, in order. A loop may skip stages but never return to one.
enum LoopStage: UInt8 {
    /// Turns run, and jobs are accepted.
    case running
    /// Every run must end, because the loop's thread ends: see `EventLoop.spawn`.
    case stopping
    /// No turn begins. Waiting objects are being released, and the mailbox is closed.
    case ending
    /// The values of `LoopLocal` are being released; no more are kept.
    case releasingLocals
    /// Nothing is left. Additions are released at once, since nothing would release them later.
    case released
    /// The descriptors are closed. No thread changes the loop, except through `LoopLife.cleanups`.
    case over
}

/// Invariant: any thread reads it; only the loop's thread changes it.
@usableFromInline
struct LoopLife: ~Copyable {
    /// The `pthread_t` of the driving thread. Stored before other code gets the loop.
    private let owner = Atomic<UInt>(clinux_this_thread())
    private let fork = ForkMark()
    // The stage's number, for a single comparison; an enum would have to be decoded.
    private let current = Atomic(LoopStage.running.rawValue)
    /// Distinguishes loops, since a new loop may reuse an ended loop's address.
    let serial = LoopLife.lastSerial.add(1, ordering: .relaxed).newValue
    private static let lastSerial = Atomic(0)
    /// Opened when no handler waits on the loop, just before `released`. Other threads may then learn of the end.
    let ended = Latch()
    /// Opened when the loop's thread no longer uses the loop. Its bodies are cleanups that other threads request while
    /// the loop ends.
    let cleanups = Latch()
    let isOver = Latch()
    /// True once a Swift job that arrived after the end has been reported.
    let hasReportedTask = Atomic(false)

    @inline(__always)
    func hasReached(_ stage: LoopStage) -> Bool { current.load(ordering: .relaxed) >= stage.rawValue }

    func isAt(_ stage: LoopStage) -> Bool { current.load(ordering: .relaxed) == stage.rawValue }

    /// Does nothing if the stage has passed. On the loop's thread.
    func advance(to stage: LoopStage) {
        if !hasReached(stage) { current.store(stage.rawValue, ordering: .releasing) }
    }

    var isOwnedByThisThread: Bool { owner.load(ordering: .relaxed) == clinux_this_thread() }

    /// Called on the thread that will drive the loop.
    func setOwner() { owner.store(clinux_this_thread(), ordering: .relaxed) }

    var isForked: Bool { fork.isForked }
}
