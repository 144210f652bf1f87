import Reactor
import Synchronization

/// The waiter for one source of a combinator.
// @unchecked: as PromiseCore; the combinator is released on its own thread, or with the last reference to the node.
final class InputNode: PromiseCore, @unchecked Sendable {
    // Owned until the node has notified it or has left. Not counted, because moving it out of an ordinary reference
    // took two atomic operations.
    @exclusivity(unchecked) private var combinator: Uncounted<CombinatorCore>?
    @exclusivity(unchecked) private var index: Int

    @inline(__always)
    init(of combinator: CombinatorCore, _ index: Int, role: CoreRole = []) {
        self.combinator = .retaining(combinator)
        self.index = index
        super.init(state: .pending, loop: combinator.loop, role: role, code: .none)
    }

    deinit { combinator?.release() }

    override func runAndRelease() {
        leaveLoop()
        takeSource()
        Self.releaseOrKeep(Uncounted(self))
    }

    /// The loop is ending. The combinator is notified that no outcome will come.
    override func discardAndRelease() {
        notifyCombinator { $0.loopEnds(beforeSourceAt: index) }
        super.discardAndRelease()
    }

    private func takeSource() {
        let word = upstream.takeOut()
        guard word != .taken else { return }
        notifyCombinator { $0.settled(index, AnySource(word.core, isFulfilled: word.isFulfilled)) }
    }

    @inline(__always)
    private func notifyCombinator(_ body: (CombinatorCore) -> Void) {
        guard let combinator = combinator.take() else { return }
        combinator.borrow(body)
        combinator.release()
    }

    /// Withdraws from the source, which the combinator no longer needs. Returns the core to cancel for that, if any.
    func leave() -> PromiseCore? {
        combinator.take()?.release()
        return leaveSource()
    }

    /// Withdraws from the source, which continues, and whose outcome is not reported.
    func letGoOfSource() {
        let word = upstream.load()
        // The source exists while this thread does not run its waiter: see `UpstreamWord`.
        if word.isWaiting { word.core.borrow { $0.annotate(.isLetGo) } }
        _ = leave()
    }

    /// Withdraws a node, which a list or a queue holds, from its source, and cancels the source if no other handler
    /// waits for it.
    static func leaveAndCancel(_ node: Uncounted<InputNode>) {
        let isCancelled = node.borrow { node in
            let word = node.upstream.load()
            // Retained: once it is claimed, its resolvers may release it.
            return word.isWaiting && word.core.object.cancel(ifOnly: node.ref)
        }
        guard isCancelled else { return node.object.leaveAndCancelSlow() }
        node.borrow { $0.combinator.take()?.release() }
        releaseOrKeep(node)
    }

    @inline(never)
    private func leaveAndCancelSlow() { leave()?.cancelIfUnobserved() }
}

extension InputNode {
    /// A node that runs inline when its source settles, for the thread's own combinator; a spare one if there is one.
    /// With the reference for the source's list.
    static func inline(of combinator: FanInCore, _ index: Int) -> Uncounted<InputNode> {
        // The loop exists: it is the calling thread's.
        guard let spare = SpareCores.takeNode(on: combinator.loop.unsafelyUnwrapped) else {
            return .retaining(InputNode(of: combinator, index, role: .inlineAtHome))
        }
        let node = spare.as(InputNode.self)
        node.borrow {
            $0.combinator = .retaining(combinator)
            $0.index = index
        }
        return node
    }

    /// Releases the reference of the list or queue that the node has left. Keeps the node if it can be reused.
    private static func releaseOrKeep(_ node: Uncounted<InputNode>) {
        if node.borrow({ $0.combinator == nil }) { SpareCores.releaseOrKeep(node: node.core) } else { node.release() }
    }
}
