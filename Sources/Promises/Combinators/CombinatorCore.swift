import Reactor
import Synchronization

/// The result of a combinator: a promise that several others settle together.
// @unchecked: accessed only on its loop's thread, except for what PromiseCore itself allows other threads.
@usableFromInline
class CombinatorCore: PromiseCore, @unchecked Sendable {
    /// Nodes that have not run yet, plus one for the code that is adding sources. Atomic, because the nodes of an ended
    /// loop are discarded by the threads that settle their sources. Those threads access nothing else of this object.
    private final let outstanding = Atomic<Int>(1)

    init(code: @escaping (PromiseCore, Phase) -> Void) {
        super.init(state: State.pending, loop: EventLoop.addressOfThisThread, code: code)
    }

    /// The source at `index` has settled. Consumes the reference to it. Must end with `inputDidEnd`.
    func settled(_ index: Int, _ source: Unmanaged<PromiseCore>, _ kind: UInt) { preconditionFailure("abstract") }

    /// The source at `index` will never settle. Must end with `inputDidEnd`.
    func abandoned(_ index: Int) { preconditionFailure("abstract") }

    /// Counts one more source.
    final func begin() { outstanding.add(1, ordering: .relaxed) }

    /// Releases what is kept only until the result settles.
    func releaseInputs() { preconditionFailure("abstract") }

    /// Counts a source that has settled, or that never will.
    final func inputDidEnd(_ error: @autoclosure () -> PromiseError = .noProducer) {
        guard outstanding.subtract(1, ordering: .acquiringAndReleasing).newValue == 0, isOpen else { return }
        // No node that could run on the loop's thread is left, so this may be any thread.
        producerDidEnd(error())
        releaseInputs()
    }
}

/// The waiter for one source of a combinator.
// @unchecked: as PromiseCore; the combinator is released on its own thread, or with the last reference to the node.
final class InputNode: PromiseCore, @unchecked Sendable {
    // Owned until the node has notified it or has left. Unmanaged, because moving it out of an ordinary reference and
    // passing it on took two atomic operations.
    private var combinator: Unmanaged<CombinatorCore>?
    private let index: Int

    @inline(__always)
    init(of combinator: CombinatorCore, _ index: Int, role: Role = []) {
        self.combinator = .passRetained(combinator)
        self.index = index
        super.init(state: State.pending, loop: combinator.loop, role: role) { _, _ in }
    }

    deinit { combinator?.release() }

    override func runAndRelease() {
        takeSource()
        super.runAndRelease()
    }

    /// The loop has ended. The threads of several sources may be here at one time, so the combinator does not receive
    /// the outcome, only the fact that none will come.
    override func discardAndRelease() {
        notifyCombinator { $0.inputDidEnd(.loopEnded) }
        super.discardAndRelease()
    }

    private func takeSource() {
        let word = upstream.exchange(Upstream.taken, ordering: .acquiring)
        guard word != Upstream.taken else { return }
        let source = Unmanaged<PromiseCore>.fromOpaque(UnsafeRawPointer(bitPattern: word & State.pointerMask)!)
        if word & Upstream.mark == Upstream.abandoned {
            source.release()
            notifyCombinator { $0.abandoned(index) }
        } else {
            notifyCombinator { $0.settled(index, source, word & State.kindMask) }
        }
    }

    @inline(__always)
    private func notifyCombinator(_ body: (CombinatorCore) -> Void) {
        guard let combinator = combinator.take() else { return }
        combinator._withUnsafeGuaranteedRef(body)
        combinator.release()
    }

    /// Withdraws from the source, which the combinator no longer needs. Returns the core that may be cancelled for
    /// that.
    func leave() -> PromiseCore? {
        combinator.take()?.release()
        return stop().source
    }

    /// Withdraws from the source, and cancels it if no other handler waits for it.
    func leaveAndCancel() {
        let word = upstream.load(ordering: .acquiring)
        if word & Upstream.mark == Upstream.waiting, let source = Self.core(word) as? ResolverCore,
            source.cancel(ifOnly: self)
        {
            combinator.take()?.release()
        } else {
            leave()?.cancelIfUnobserved()
        }
    }
}

extension ResolverCore {
    /// The fast path for a source that only `node` has ever waited for, as is usual for the losers of a race: takes the
    /// list and the right to settle in one step. Returns `false` in all other cases, without any effect.
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
        // The node counts as a handler that received the error.
        reject(Self.cancellationError, from: creationSite, as: State.handled(State.rejected))
        Unmanaged.passUnretained(node).release()
        return true
    }
}
