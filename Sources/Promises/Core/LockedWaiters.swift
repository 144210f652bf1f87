import ReactorLibc
import Reactor

/// The list of a pending core's waiters, locked so that no thread takes it while its holder reads it or removes nodes.
/// Nodes can still be pushed. The value's deinit unlocks the list.
///
/// No node may be removed while the holder of the right to settle reads the list. The holder has claimed an externally
/// settled promise first, which `init` detects. Any other promise is settled without a claim, on the thread of its
/// loop, so only that thread may lock its list.
struct LockedWaiters: ~Copyable {
    // The caller holds the core.
    private let core: CoreRef
    let newest: CoreRef?

    /// Locks the list; `nil` if the core is not pending, or is claimed.
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

    /// Returns true when a node of the list is a tombstone, which no longer waits for this core. A tombstone is never
    /// attached again, since its `next` belongs to this list.
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

    consuming func sweep() {
        let core = core
        Self.release(from: removeAll { Self.isWithdrawn($0, from: core) })
    }

    /// Removes the waiters that match, and unlocks the list.
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
                // The shortcut's target may have been removed.
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
        // A claim or another waiter would have changed the word.
        let own = StateWord.pending.pushing(waiterAt: node.address).locked
        guard newest == node, node.next == nil, core.borrow({ $0.state.replace(own, by: StateWord.pending.claimed) })
        else {
            _ = consume self
            return false
        }
        discard self
        return true
    }

    /// Replaces `newest` and all older nodes by `kept`, and unlocks the list.
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

    /// Releases removed nodes, from `first` to the one before `end`.
    private static func release(from first: CoreRef?, upTo end: CoreRef? = nil) {
        var removed = first
        while let node = removed, node != end {
            removed = node.next
            node.release()
        }
    }
}

extension LockedWaiters {
    /// Returns true when a node other than `node` keeps the producer working. Unlocks the list; may remove tombstones.
    consuming func containsListener(besides node: CoreRef?) -> Bool {
        var kept = newest
        let newer = passTombstones(&kept)
        var listener = newestListener(from: newer.end)
        var older: (end: CoreRef?, unlinked: CoreRef?) = (nil, nil)
        if let node, listener == node {
            // `node` is in the list only once.
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

    /// Skips the tombstones at the head of `list`, a part of this list, and unlinks them if there are at least 16.
    /// Otherwise a caller that withdraws one waiter after the other would walk past all its earlier tombstones.
    /// - Returns: the node after the tombstones and, if they were unlinked, the first of them. The caller must release
    ///   them after unlocking the list.
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
    /// Returns true when a handler other than `waiter`, or a `hang`, waits for this core, or a thread is settling it.
    /// Locks the list, and may remove tombstones, whose release may call `conf.logHandler`.
    func isWanted(besides waiter: PromiseCore?) -> Bool {
        if isAlwaysWanted { return true }
        guard let waiters = LockedWaiters(of: self) else { return true }
        return waiters.containsListener(besides: waiter?.ref)
    }

    /// Counts a waiter that has become a tombstone.
    func noteWithdrawal() {
        let excess = shared.countWithdrawal()
        guard excess >= 0 else { return }
        if role.contains(.externallySettled) || loop == .ofThisThread { return sweep() }
        if excess == 0 { loop?.borrow { _ = $0.post(InternalJob { [self] in sweep() }) } }
    }

    /// Removes the tombstones, on a thread that may lock the list.
    private func sweep() {
        if let waiters = LockedWaiters(of: self) { waiters.sweep() }
    }
}
