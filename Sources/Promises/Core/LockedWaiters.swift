import ReactorLibc
import Reactor

/// The list of a pending core's waiters, locked against the threads that would take it, to read it or to remove nodes.
/// Nodes can still be pushed. The end of the value unlocks it.
///
/// No node may be removed from the list while the holder of the right to settle reads it. For an externally settled
/// promise the holder has claimed it first, which `init` detects. Any other holder settles on the thread of the core's
/// loop without claiming, so only that thread may lock the list.
struct LockedWaiters: ~Copyable {
    // The caller holds it.
    private let core: CoreRef
    /// The first node of the list.
    let newest: CoreRef?

    /// `nil` if the core is not pending, or is claimed.
    @inline(__always)
    init?(of core: PromiseCore) {
        var seen = core.state.load()
        while seen.isClaimable {
            if seen.isLocked {
                sched_yield()
                seen = core.state.load()
            } else if core.state.tryToReplace(&seen, by: seen.locked) {
                self.core = core.ref
                newest = seen.waiters
                return
            }
        }
        return nil
    }

    deinit { core.borrow { $0.state.unlock() } }

    /// Returns true when a node of the list is a tombstone, which no longer waits for this core. It is never attached again
    /// while it is here, since its `next` belongs to this list.
    func isWithdrawn(_ node: CoreRef) -> Bool { Self.isWithdrawn(node, from: core) }

    private static func isWithdrawn(_ node: CoreRef, from core: CoreRef) -> Bool {
        node.borrow { $0.sourceWord.loadRelaxed() } != .waiting(forCoreAt: core.address)
    }

    /// Returns true when a node of the list keeps the producer working.
    func keepsWorkAlive(_ node: CoreRef) -> Bool {
        !isWithdrawn(node) && node.borrow { !$0.role.contains(.keepsNoWorkAlive) }
    }

    func contains(where matches: (CoreRef) -> Bool) -> Bool { newest?.list.contains(where: matches) ?? false }

    // MARK: Removing

    /// Removes the tombstones.
    consuming func sweep() {
        let core = core
        Self.release(from: removeAll { Self.isWithdrawn($0, from: core) })
    }

    /// Removes these waiters, and unlocks the list.
    /// - Returns: the removed waiters, oldest first, with the references that the list held.
    consuming func removeAll(where isToGo: (CoreRef) -> Bool) -> CoreRef? {
        var kept: CoreRef?
        var last: CoreRef?
        var removed: CoreRef?
        var (left, visited) = (0, 0)
        var rest = newest
        while let node = rest {
            rest = node.next
            visited += 1
            if isToGo(node) {
                node.next = removed
                removed = node
            } else {
                if let last { last.next = node } else { kept = node }
                last = node
                left += 1
                // The node that the shortcut leads to may have been removed.
                WatchingCore.forgetShortcut(at: node)
            }
        }
        EventLoop.nodesWereVisited(visited)
        last?.next = nil
        core.borrow { $0.shared.restartCount(nodesLeft: left) }
        unlock(keeping: kept)
        return removed
    }

    /// Takes the list and the right to settle in one step, if `node` is the only waiter, and nobody has claimed the
    /// core.
    @inline(__always)
    consuming func takeAndClaim(only node: CoreRef) -> Bool {
        // A claim, or another waiter, changes the word.
        let own = StateWord.pending.pushing(waiterAt: node.address).locked
        guard newest == node, node.next == nil, core.borrow({ $0.state.replace(own, by: StateWord.pending.claimed) })
        else {
            _ = consume self
            return false
        }
        discard self
        return true
    }

    /// Unlocks the list, with `kept` in place of `newest` and all older nodes.
    private consuming func unlock(keeping kept: CoreRef?) {
        let (core, newest) = (core, newest)
        discard self
        core.borrow { core in
            var seen = core.state.load()
            while seen.waiters == newest {
                if core.state.tryToReplace(&seen, by: seen.unlocked(withWaiterAt: kept?.address ?? 0)) { return }
            }
            // Newer nodes have been pushed. They stay; the oldest of them is linked to the kept ones.
            seen.waiters?.list.first { $0.next == newest }?.next = kept
            core.state.unlock()
        }
    }

    /// Releases nodes taken out of a list, up to `end`, which stays.
    private static func release(from first: CoreRef?, upTo end: CoreRef? = nil) {
        var removed = first
        while let node = removed, node != end {
            removed = node.next
            node.release()
        }
    }
}

extension LockedWaiters {
    /// Tells if another node than `node` keeps the producer working, and unlocks the list. May remove tombstones.
    consuming func containsListener(besides node: CoreRef?) -> Bool {
        var kept = newest
        let newer = passTombstones(&kept)
        var listener = newestListener(from: newer.end)
        var older: (end: CoreRef?, unlinked: CoreRef?) = (nil, nil)
        if let node, listener == node {
            // It is in the list once.
            var rest = node.next
            older = passTombstones(&rest)
            node.next = rest
            listener = newestListener(from: older.end)
        }
        unlock(keeping: kept)
        Self.release(from: newer.unlinked, upTo: newer.end)
        Self.release(from: older.unlinked, upTo: older.end)
        return listener != nil
    }

    /// Passes the tombstones at the head of `list`, a part of this one, and unlinks them once there are 16: a caller that
    /// withdraws one waiter after the other would walk past all the tombstones that it has left.
    /// - Returns: the node after them, and the first one if they have been unlinked, to be released when the list is
    ///   unlocked.
    private func passTombstones(_ list: inout CoreRef?) -> (end: CoreRef?, unlinked: CoreRef?) {
        let first = list
        var (count, end) = (0, first)
        while let node = end, isWithdrawn(node) { (count, end) = (count + 1, node.next) }
        EventLoop.nodesWereVisited(count)
        guard count >= 16 else { return (end, nil) }
        list = end
        return (end, first)
    }
}

extension PromiseCore {
    /// Returns true when a handler other than `waiter`, or a `hang`, waits here, or while a thread settles the core. Locks
    /// the list, and may remove tombstones from it, whose release may call `conf.logHandler`.
    func isWanted(besides waiter: PromiseCore?) -> Bool {
        if isAlwaysWanted { return true }
        guard let waiters = LockedWaiters(of: self) else { return true }
        return waiters.containsListener(besides: waiter?.ref)
    }

    /// Counts a waiter of the list that has become a tombstone.
    func noteWithdrawal() {
        let excess = shared.countWithdrawal()
        guard excess >= 0 else { return }
        // This thread may lock the list.
        if role.contains(.externallySettled) || loop == .ofThisThread { return sweep() }
        if excess == 0 { loop?.borrow { _ = $0.post(InternalJob { [self] in sweep() }) } }
    }

    /// Removes the tombstones, on a thread that may lock the list.
    private func sweep() {
        if let waiters = LockedWaiters(of: self) { waiters.sweep() }
    }
}
