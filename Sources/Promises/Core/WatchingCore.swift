import Reactor

extension PromiseCore {
    /// Calls `body` in a job once this core has settled, without keeping the producer alive or handling a rejection.
    package func watch(_ body: @escaping (AnySource) -> Void) { attach(WatchingCore(watching: Notification(body))) }
}

/// A waiter, such as `onCancel`, that does not keep its source's producer alive, and does not mark a rejection as
/// handled.
///
/// Each cancellation below a promise checks for other waiters. So that these checks need not walk past many watchers
/// each time, each watcher remembers where the last walk over it ended.
// @unchecked Sendable: for PromiseCore's reasons. Only `LockedWaiters`, which one thread at a time has, accesses
// `shortcut`.
final class WatchingCore: PromiseCore, @unchecked Sendable {
    /// An older node of the same list, such that no node between it and the watcher keeps work alive; `nil` if unknown.
    /// Unowned, because it is older than the watcher: nodes that are removed without resetting the shortcuts are newer
    /// than all watchers that stay, or follow a waiter that keeps work alive, where each walk from a newer watcher
    /// stops.
    @exclusivity(unchecked) fileprivate final var shortcut: CoreRef?

    init<Op: Operation>(watching operation: Op, role: CoreRole = []) {
        super.init(
            state: .pending, loop: .ofThisThread, role: role.union([.leavesUnhandled, .keepsNoWorkAlive]),
            code: .of(Op.self))
        payload.store(operation)
    }

    static func forgetShortcut(at node: CoreRef) { at(node)?.borrow { $0.shortcut = nil } }

    fileprivate static func at(_ node: CoreRef) -> UnownedReference<WatchingCore>? {
        node.borrow { type(of: $0) == WatchingCore.self } ? node.as(WatchingCore.self) : nil
    }
}

// Finds the nodes that keep the producer working.

extension LockedWaiters {
    /// Returns the newest node, from `first` to the oldest, that keeps the producer working; `nil` if there is none.
    ///
    /// Tombstones and watchers never will, so the next walk can skip the nodes that this one has passed: each watcher
    /// on the way gets a shortcut to the end of this walk, like path compression in union-find. So the amortized cost
    /// of a walk is logarithmic in the watchers and cancellations.
    func newestListener(from first: CoreRef?) -> CoreRef? {
        guard let first else { return nil }
        // Ends at the oldest node if none keeps work alive.
        var (end, visited) = (first, 1)
        while !keepsWorkAlive(end), let next = Self.following(end) { (end, visited) = (next, visited + 1) }
        var passed = first
        while passed != end, let next = Self.following(passed) {
            WatchingCore.at(passed)?.borrow { $0.shortcut = end }
            passed = next
        }
        EventLoop.nodesWereVisited(visited)
        return keepsWorkAlive(end) ? end : nil
    }

    /// Returns the next node of a walk, after `node`, which does not keep work alive.
    private static func following(_ node: CoreRef) -> CoreRef? {
        WatchingCore.at(node)?.borrow { $0.shortcut } ?? node.next
    }
}
