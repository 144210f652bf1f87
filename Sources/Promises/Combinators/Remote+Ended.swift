import Reactor
import Synchronization

extension LoopRemote {
    /// A guarantee that is fulfilled when the loop has ended and released everything it held. It waits without blocking
    /// a thread.
    ///
    /// ```swift
    /// worker.stop()
    /// hang(worker.ended)
    /// ```
    ///
    /// The property may be read on any thread. The guarantee does not keep this thread's loop alive: call `hang` on it,
    /// or take a `hold()`. Read the property once, because each guarantee is kept until the loop has ended, or until it
    /// is cancelled, for instance by losing a race.
    public var ended: Guarantee<Void> { Guarantee(EndOfLoops.of(CollectionOfOne(self))) }
}

extension LoopGroup {
    /// A guarantee that is fulfilled when all loops have ended. It waits without blocking a thread.
    ///
    /// The property may be read on any thread, and in async functions; see `LoopRemote.ended`. The last loop that
    /// ends settles the guarantee. No handler is attached on the calling thread, whose loop may never be driven.
    public var ended: Guarantee<Void> { Guarantee(EndOfLoops.of(self)) }
}

/// The promise of the end of several loops.
// @unchecked: as PromiseCore. `watches` is written before any other code has the promise, and then read by the party
// that has claimed it.
private final class EndOfLoops: PromiseCore, @unchecked Sendable {
    private let home = EventLoop.ofCurrentThread.remote
    private let left: Atomic<Int>
    private var watches: [(loop: LoopRemote, id: Int)] = []

    private init(_ count: Int) {
        left = Atomic(count)
        super.init(state: .pending, loop: .ofThisThread, role: .externallySettled, code: .of(Follow<Void>.self))
    }

    static func of(_ loops: some Collection<LoopRemote>) -> PromiseCore {
        let end = EndOfLoops(loops.count)
        end.home.beginDispatchedJob()
        end.watches = loops.map { loop in (loop, loop.whenEnded { end.oneDidEnd() }) }
        return end.traced(root: "ended", Guarantee<Void>.self, #fileID, #line)
    }

    private func oneDidEnd() {
        guard left.subtract(1, ordering: .acquiringAndReleasing).newValue == 0, claim() else { return }
        fulfill(())
        home.endDispatchedJob()
    }

    override func cancelExternally(with error: (any Error)?, in _: inout Cancellation) {
        guard claim() else { return }
        rejectCancelled(with: error, at: nil)
        for (loop, id) in watches { loop.forgetWhenEnded(id) }
        home.endDispatchedJob()
    }
}
