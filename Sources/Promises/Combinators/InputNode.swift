import CLinux
import Reactor
import Synchronization

/// The waiter for one source of a combinator.
// @unchecked: as PromiseCore; the combinator is released on its own thread, or with the last reference to the node.
final class InputNode: PromiseCore, @unchecked Sendable {
    // Owned until the node has notified it or has left. Unmanaged, because moving it out of an ordinary reference and
    // passing it on took two atomic operations.
    @exclusivity(unchecked) private var combinator: Unmanaged<CombinatorCore>?
    @exclusivity(unchecked) private var index: Int

    @inline(__always)
    init(of combinator: CombinatorCore, _ index: Int, role: Role = []) {
        self.combinator = .passRetained(combinator)
        self.index = index
        super.init(state: State.pending, loop: combinator.loop, role: role) { _, _ in }
    }

    deinit { combinator?.release() }

    override func runAndRelease() {
        // A combinator has a loop.
        leaveLoop(loop.unsafelyUnwrapped)
        takeSource()
        Self.releaseOrKeepNode(.passUnretained(self))
    }

    /// The loop is ending. The combinator does not receive an outcome, only the fact that none will come.
    override func discardAndRelease() {
        notifyCombinator { $0.abandoned(index, .loopEnded) }
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

    /// Withdraws from the source, which continues, and whose outcome is not reported.
    func letGoOfSource() {
        let word = upstream.load(ordering: .acquiring)
        // The source exists as long as this thread does not run its waiter: see `Upstream`.
        if word & Upstream.mark == Upstream.waiting { Self.core(word).noteLetGo() }
        _ = leave()
    }

    /// Withdraws a node, which a list or a queue holds, from its source, and cancels that if no other handler waits for
    /// it.
    static func leaveAndCancel(_ node: Unmanaged<InputNode>) {
        let isCancelled = node._withUnsafeGuaranteedRef { node in
            let word = node.upstream.load(ordering: .acquiring)
            // Retained: when it has been claimed, its resolvers may release it.
            return word & Upstream.mark == Upstream.waiting
                && (core(word) as? ResolverCore)?.cancel(ifOnly: node) == true
        }
        guard isCancelled else { return node.takeUnretainedValue().leaveAndCancelSlow() }
        node._withUnsafeGuaranteedRef { $0.combinator.take()?.release() }
        releaseOrKeepNode(node)
    }

    @inline(never)
    private func leaveAndCancelSlow() { leave()?.cancelIfUnobserved() }
}

// Nodes that are used again, like the cores of steps: see PromiseCore+Reuse.swift, whose invariant holds for them too, with
// these differences. A kept node is an `InputNode` that runs inline, of this very loop, so that its constants are those of
// the next one. It has no operation and no outcome, and no promise leads to it: it is and stays pending. The combinator that
// has its address forgets the address before the node notifies it, or withdraws.

extension InputNode {
    /// A node that runs inline when its source settles, for the thread's own combinator: a kept one if there is one. With
    /// the reference for the source's list.
    static func inline(of combinator: FanInCore, _ index: Int) -> Unmanaged<InputNode> {
        // The loop is there: it is that of the calling thread.
        let loop = Unmanaged<EventLoop>.fromOpaque(combinator.loop.unsafelyUnwrapped)
        guard let spare = loop._withUnsafeGuaranteedRef({ $0.takeSpareNode() }) else {
            return .passRetained(InputNode(of: combinator, index, role: .inlineAtHome))
        }
        let node = Unmanaged<InputNode>.fromOpaque(spare.toOpaque())
        node._withUnsafeGuaranteedRef {
            assert($0.state.load(ordering: .relaxed) == State.spare, "a kept node was changed")
            $0.state.store(State.pending, ordering: .relaxed)
            $0.upstream.store(0, ordering: .relaxed)
            $0.resetMarks()
            $0.combinator = .passRetained(combinator)
            $0.index = index
        }
        return node
    }

    /// Releases the reference of the list or the queue that the node has left. Keeps the node if it can be used again.
    private static func releaseOrKeepNode(_ node: Unmanaged<InputNode>) {
        let isKept = node._withUnsafeGuaranteedRef { $0.keep() }
        if !isKept { node.release() }
    }

    /// Keeps the node, with the caller's reference.
    @inline(__always)
    private func keep() -> Bool {
        guard let here = clinux_get_current_loop(), loop == here, role == .inlineAtHome,
            annotations.load(ordering: .relaxed) == 0, combinator == nil,
            upstream.load(ordering: .relaxed) == Upstream.taken, state.load(ordering: .relaxed) == State.pending,
            isReferencedOnce
        else { return false }
        assert(!Self.hasSideTable(.passUnretained(self)), "a weak reference to a node")
        let job = Unmanaged<Job>.fromOpaque(Unmanaged.passUnretained(self).toOpaque())
        guard Unmanaged<EventLoop>.fromOpaque(here)._withUnsafeGuaranteedRef({ $0.keepSpareNode(job) }) else {
            return false
        }
        state.store(State.spare, ordering: .relaxed)
        return true
    }
}

extension PromiseCore {
    /// A combinator that has settled does not wait for this core.
    func noteLetGo() { annotations.bitwiseOr(Self.isLetGo, ordering: .relaxed) }
}

extension ResolverCore {
    /// The fast path for a source that only `node` has ever waited for, as is usual for the losers of a race: takes the
    /// list and the right to settle in one step. The node has then left the list, and the list's reference is the
    /// caller's. Returns `false` in all other cases, without any effect.
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
        node.leaveLoop(node.loop.unsafelyUnwrapped)
        // The node counts as a handler that received the error.
        reject(Self.cancellationError, from: creationSite, as: State.handled(State.rejected))
        return true
    }
}
