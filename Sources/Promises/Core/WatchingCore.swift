import Reactor

extension PromiseCore {
    /// Calls `body` in a job once this core has settled, without keeping the producer alive or handling a rejection.
    package func watch(_ body: @escaping (AnySource) -> Void) { attach(WatchingCore(watching: Notification(body))) }
}

/// A waiter, such as `onCancel`, that does not keep its source's producer alive, and does not mark a rejection as
/// handled.
///
/// Each cancellation below a promise checks for other waiters. Each watcher remembers where its last walk ended, so
/// that these checks do not walk past many watchers each time.
// @unchecked Sendable: as PromiseCore. `shortcut` is accessed only by `LockedWaiters`, of which only one thread at a
// time has one.
final class WatchingCore: PromiseCore, @unchecked Sendable {
    /// A node of the same list: no node between the watcher and this one keeps work alive. `nil`: unknown. Unowned,
    /// because it is older than the watcher. Nodes that are removed without resetting the shortcuts are newer than all
    /// watchers that stay, or follow a waiter that keeps work alive, where each walk from a newer watcher stops.
    @exclusivity(unchecked) final var shortcut: CoreRef?

    init<Op: Operation>(watching operation: Op, role: CoreRole = []) {
        super.init(
            state: .pending, loop: .ofThisThread, role: role.union([.leavesUnhandled, .keepsNoWorkAlive]),
            code: .of(Op.self))
        payload.store(operation)
    }

    static func at(_ node: CoreRef) -> UnownedReference<WatchingCore>? {
        node.borrow { type(of: $0) == WatchingCore.self } ? node.as(WatchingCore.self) : nil
    }
}
