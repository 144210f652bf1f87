import Reactor

/// A waiter that is no reason to keep its source's producer working, such as `onCancel`, and that does not make a
/// rejection a handled one.
///
/// A promise may have many of them, and each cancellation below the promise asks whether another waiter listens. So
/// that these questions do not walk past all watchers each time, each watcher remembers where the walk has led from it.
// @unchecked Sendable: as PromiseCore. `shortcut` is accessed only with the list's `isBusy` bit set, which one thread
// has at a time.
final class WatchingCore: PromiseCore, @unchecked Sendable {
    enum Shortcut {
        /// Unknown: visit the next node.
        case none
        /// No node between the watcher and this node listens. The node is in the same list and is older than the
        /// watcher: nodes that are removed without resetting the shortcuts are newer than all watchers. Not owned.
        case to(Unmanaged<Job>)
        /// No older node listens.
        case end
    }

    @exclusivity(unchecked) final var shortcut = Shortcut.none

    init<Op: Operation>(watching operation: Op) {
        super.init(state: State.pending, loop: EventLoop.addressOfThisThread, role: [.onlyWatching, .notListening]) {
            PromiseCore.perform(Op.self, $0, $1)
        }
        store(operation)
    }
}

extension PromiseCore {
    /// Runs `operation` on this thread's loop once this core has settled, without being a reason to keep the producer
    /// working until then.
    func watch<Op: Operation>(_ operation: Op) { attach(WatchingCore(watching: operation)) }

    /// The node, if it is a `WatchingCore`. (Other nodes have one of these roles.)
    static func watcher(_ node: Unmanaged<Job>) -> Unmanaged<WatchingCore>? {
        core(node).role.isSuperset(of: [.onlyWatching, .notListening]) ? .fromOpaque(node.toOpaque()) : nil
    }

    /// The newest node of the locked list, from `first` to the oldest, that listens.
    ///
    /// A tombstone or a watcher never listens again, so what a walk has passed can be skipped by the next one: each
    /// watcher on the way gets a shortcut to where this walk ends, as union-find compresses its paths. However many
    /// watchers and cancellations there are, the amortized cost of a walk is logarithmic.
    func listener(from first: Unmanaged<Job>?) -> Unmanaged<Job>? {
        var visited = 0
        var found = first
        while let node = found, !isListening(Self.core(node)) {
            visited += 1
            found = Self.following(node)
        }
        let shortcut = found.map(WatchingCore.Shortcut.to) ?? .end
        var passed = visited > 1 ? first : nil
        while let node = passed, node.toOpaque() != found?.toOpaque() {
            passed = Self.following(node)
            Self.watcher(node)?._withUnsafeGuaranteedRef { $0.shortcut = shortcut }
        }
        EventLoop.nodesWereVisited(visited)
        return found
    }

    /// The next node of a walk, after a node that does not listen.
    private static func following(_ node: Unmanaged<Job>) -> Unmanaged<Job>? {
        switch watcher(node)?._withUnsafeGuaranteedRef({ $0.shortcut }) ?? .none {
        case .none: node._withUnsafeGuaranteedRef { $0.next }
        case .to(let older): older
        case .end: nil
        }
    }
}
