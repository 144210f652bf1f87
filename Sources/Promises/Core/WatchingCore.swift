import Reactor

/// A waiter that is no reason to keep its source's producer working, such as `onCancel`, and that does not make a
/// rejection a handled one.
///
/// A promise may have many of them, and each cancellation below the promise asks whether another waiter needs it. So
/// that these questions do not walk past all watchers each time, each watcher remembers where the walk has led from it.
// @unchecked Sendable: as PromiseCore. `shortcut` is accessed only by `LockedWaiters`, of which one thread has one at a time.
final class WatchingCore: PromiseCore, @unchecked Sendable {
    enum Shortcut {
        /// Unknown: visit the next node.
        case none
        /// No node between the watcher and this node keeps work alive. The node is in the same list and is older than the
        /// watcher: nodes that are removed without resetting the shortcuts are newer than all watchers. Not owned.
        case to(CoreRef)
        /// Nor does any older node.
        case end
    }

    @exclusivity(unchecked) final var shortcut = Shortcut.none
    /// Whether a cancellation of the promise waits for it.
    let isCleanUp: Bool

    init<Op: Operation>(watching operation: Op, isCleanUp: Bool) {
        self.isCleanUp = isCleanUp
        super.init(state: .pending, loop: .ofThisThread, role: [.leavesUnhandled, .keepsNoWorkAlive]) {
            PromiseCore.perform(Op.self, $0, $1)
        }
        payload.store(operation)
    }

    /// The node, if it is a `WatchingCore`.
    static func at(_ node: CoreRef) -> Uncounted<WatchingCore>? {
        node.borrow { type(of: $0) == WatchingCore.self } ? node.as(WatchingCore.self) : nil
    }

    /// Whether the node is a clean-up of the core in whose list it is.
    static func isCleanUp(_ node: CoreRef) -> Bool { at(node)?.borrow { $0.isCleanUp } ?? false }
}

extension PromiseCore {
    /// Runs `operation` on this thread's loop once this core has settled, without being a reason to keep the producer
    /// working until then.
    /// - Parameter isCleanUp: whether a cancellation of this core runs it first, and rejects this core when it has ended.
    func watch<Op: Operation>(_ operation: Op, isCleanUp: Bool = false) {
        attach(WatchingCore(watching: operation, isCleanUp: isCleanUp))
    }
}

extension LockedWaiters {
    /// Whether another node than `waiter` keeps the producer working.
    consuming func keepWorkAlive(besides waiter: CoreRef?) -> Bool {
        // A caller that withdraws one waiter after the other asks this each time, and would walk past all the
        // tombstones that it has left. So the tombstones at the head of the list are removed once there are 16.
        var first = newest
        var tombstones = 0
        while let node = first, isWithdrawn(node) {
            first = node.next
            tombstones += 1
        }
        var keeper = keeper(from: first)
        if let waiter, keeper == waiter { keeper = self.keeper(from: waiter.next) }
        EventLoop.nodesWereVisited(tombstones)
        if tombstones >= 16 { removeTombstones(upTo: first) }
        return keeper != nil
    }

    /// The newest node, from `first` to the oldest, that keeps the producer working.
    ///
    /// A tombstone or a watcher never does again, so what a walk has passed can be skipped by the next one: each
    /// watcher on the way gets a shortcut to where this walk ends, as union-find compresses its paths. However many
    /// watchers and cancellations there are, the amortized cost of a walk is logarithmic.
    private func keeper(from first: CoreRef?) -> CoreRef? {
        var visited = 0
        var found = first
        while let node = found, !keepsWorkAlive(node) {
            visited += 1
            found = Self.following(node)
        }
        let shortcut = found.map(WatchingCore.Shortcut.to) ?? .end
        var passed = visited > 1 ? first : nil
        while let node = passed, node != found {
            passed = Self.following(node)
            WatchingCore.at(node)?.borrow { $0.shortcut = shortcut }
        }
        EventLoop.nodesWereVisited(visited)
        return found
    }

    /// The next node of a walk, after a node that does not keep work alive.
    private static func following(_ node: CoreRef) -> CoreRef? {
        switch WatchingCore.at(node)?.borrow({ $0.shortcut }) ?? .none {
        case .none: node.next
        case .to(let older): older
        case .end: nil
        }
    }
}
