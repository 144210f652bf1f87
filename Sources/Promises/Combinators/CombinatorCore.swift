import Reactor
import Synchronization

/// The result of a combinator: a promise that several others settle together.
// @unchecked: used on its loop's thread only, but for what PromiseCore itself allows others.
@usableFromInline
class CombinatorCore: PromiseCore, @unchecked Sendable {
    /// Nodes that are still to run, and one for whoever is adding sources. Atomic, since nodes whose loop has ended are
    /// discarded by whoever settles their sources. They touch nothing else here.
    private final let outstanding = Atomic<Int>(1)

    init(code: @escaping (PromiseCore, Phase) -> Void) {
        super.init(state: State.pending, loop: EventLoop.addressOfThisThread, code: code)
    }

    /// The source of that number has settled. Takes over the reference to it; must end with `lose`.
    func settled(_ index: Int, _ source: Unmanaged<PromiseCore>, _ kind: UInt) { preconditionFailure("abstract") }

    /// The source of that number never will. Must end with `lose`.
    func abandoned(_ index: Int) { preconditionFailure("abstract") }

    /// There is one more source.
    final func begin() { outstanding.add(1, ordering: .relaxed) }

    /// Gives up what is only held for a result that is still to come.
    func letGo() { preconditionFailure("abstract") }

    /// A source has settled, or never will.
    final func lose(_ error: @autoclosure () -> PromiseError = .ofNobody) {
        guard outstanding.subtract(1, ordering: .acquiringAndReleasing).newValue == 0, isOpen else { return }
        // Nobody is left who could run here, so this may be any thread.
        producerDidEnd(error())
        letGo()
    }
}

/// What waits for one source of a gatherer.
// @unchecked: as PromiseCore; the gatherer is let go on its own thread, or by the last who holds the node.
final class InputNode: PromiseCore, @unchecked Sendable {
    // Owned until it is told, or left. By hand: to take it out of a reference and hand it on cost two atomic operations.
    private var gatherer: Unmanaged<CombinatorCore>?
    private let index: Int

    @inline(__always)
    init(of gatherer: CombinatorCore, _ index: Int, role: Role = []) {
        self.gatherer = .passRetained(gatherer)
        self.index = index
        super.init(state: State.pending, loop: gatherer.loop, role: role) { _, _ in }
    }

    deinit { gatherer?.release() }

    override func runAndRelease() {
        takeSource()
        super.runAndRelease()
    }

    /// The loop has ended. Each source's thread may be here at the same time, so the gatherer is not told the outcome,
    /// only that none will come.
    override func discardAndRelease() {
        tellGatherer { $0.lose(.loopEnded) }
        super.discardAndRelease()
    }

    private func takeSource() {
        let word = upstream.exchange(Upstream.taken, ordering: .acquiring)
        guard word != Upstream.taken else { return }
        let source = Unmanaged<PromiseCore>.fromOpaque(UnsafeRawPointer(bitPattern: word & State.pointerMask)!)
        if word & Upstream.mark == Upstream.abandoned {
            source.release()
            tellGatherer { $0.abandoned(index) }
        } else {
            tellGatherer { $0.settled(index, source, word & State.kindMask) }
        }
    }

    @inline(__always)
    private func tellGatherer(_ body: (CombinatorCore) -> Void) {
        guard let gatherer = gatherer.take() else { return }
        gatherer._withUnsafeGuaranteedRef(body)
        gatherer.release()
    }

    /// The gatherer does not want the source any more; who may be cancelled for that, is the answer.
    func leave() -> PromiseCore? {
        gatherer.take()?.release()
        return stop().source
    }

    /// The same, and cancels the source if nobody else waits for it.
    func leaveAndCancel() {
        let word = upstream.load(ordering: .acquiring)
        if word & Upstream.mark == Upstream.waiting, let source = Self.core(word) as? ResolverCore,
            source.cancel(ifOnly: self)
        {
            gatherer.take()?.release()
        } else {
            leave()?.cancelIfUnobserved()
        }
    }
}

extension ResolverCore {
    /// The short way if nobody but `node` has ever waited, as is the case with most who lose a race: takes the list and the
    /// right to settle in one step. False if it is another case; nothing has happened then.
    fileprivate func cancel(ifOnly node: InputNode) -> Bool {
        guard let first = lockWaiters() else { return false }
        // A claim, or another waiter, changes the word.
        guard first?.toOpaque() == Unmanaged.passUnretained(node).toOpaque(), node.next == nil,
            exchange(node.address | State.pending | State.isBusy, State.pending | State.isClaimed)
        else {
            unlockWaiters()
            return false
        }
        isCancelled = true
        node.upstream.store(Upstream.taken, ordering: .relaxed)
        node.waitsNoMore()
        storeError(Self.cancellationError, creationSite)
        retain()
        // The node is somebody who was told.
        settle(State.handled(State.rejected))
        Unmanaged.passUnretained(node).release()
        return true
    }
}
