import Reactor

extension PromiseCore {
    /// Runs `operation` on this thread's loop once this core has settled, without keeping the producer working until
    /// then.
    /// - Parameter isCleanUp: whether a cancellation of this core runs it first, and rejects this core when it has
    ///   ended.
    func watch<Op: Operation>(_ operation: Op, isCleanUp: Bool = false) {
        attach(WatchingCore(watching: operation, isCleanUp: isCleanUp))
    }
}

/// A waiter that does not keep its source's producer working, such as `onCancel`, and does not mark a rejection as
/// handled.
///
/// A promise may have many of them, and each cancellation below the promise checks for other waiters. So that these
/// checks do not walk past all watchers each time, each watcher remembers where its last walk ended.
// @unchecked Sendable: as PromiseCore. `shortcut` is accessed only by `LockedWaiters`, of which one thread has one at a
// time.
final class WatchingCore: PromiseCore, @unchecked Sendable {
    enum Shortcut {
        /// Unknown: visit the next node.
        case none
        /// No node between the watcher and this node keeps work alive. The node is in the same list and is older than
        /// the watcher: nodes that are removed without resetting the shortcuts are newer than all watchers. Not owned.
        case to(CoreRef)
        /// No older node keeps work alive either.
        case end
    }

    @exclusivity(unchecked) final var shortcut = Shortcut.none
    /// Whether a cancellation of the promise waits for it.
    let isCleanUp: Bool

    init<Op: Operation>(watching operation: Op, isCleanUp: Bool) {
        self.isCleanUp = isCleanUp
        super.init(
            state: .pending, loop: .ofThisThread, role: [.leavesUnhandled, .keepsNoWorkAlive], code: .of(Op.self))
        payload.store(operation)
    }

    override var isReportedUndelivered: Bool { false }

    /// The node, if it is a `WatchingCore`.
    static func at(_ node: CoreRef) -> Uncounted<WatchingCore>? {
        node.borrow { type(of: $0) == WatchingCore.self } ? node.as(WatchingCore.self) : nil
    }

    /// Whether the node is a clean-up of the core whose list it is in.
    static func isCleanUp(_ node: CoreRef) -> Bool { at(node)?.borrow { $0.isCleanUp } ?? false }
}
