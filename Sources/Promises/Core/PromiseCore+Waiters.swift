import Glibc
import Reactor
import Synchronization

// The list of a core's waiters, as used by threads that do not take it to settle: whether the core has waiters, and how
// the tombstones of withdrawn waiters are removed.

extension PromiseCore {
    /// Whether a handler, or a `hang`, waits here. While a thread settles the core, it counts as wanted.
    var isWanted: Bool { isWanted(besides: nil) }

    /// Whether another handler than `waiter`, or a `hang`, waits here.
    func isWanted(besides waiter: PromiseCore?) -> Bool {
        // A combinator that has settled lets it continue.
        if annotations.load(ordering: .relaxed) & Self.isLetGo != 0 { return true }
        guard let first = lockWaiters() else { return true }
        // A caller that withdraws one waiter after the other asks this each time, and would walk past all the
        // tombstones that it has left. So the tombstones at the head of the list are removed once there are 16.
        var newest = first
        var tombstones = 0
        while let node = newest, isWithdrawn(Self.core(node)) {
            newest = node._withUnsafeGuaranteedRef { $0.next }
            tombstones += 1
        }
        var listener = listener(from: newest)
        if let waiter, listener?.toOpaque() == Unmanaged.passUnretained(waiter).toOpaque() {
            listener = self.listener(from: waiter.next)
        }
        EventLoop.nodesWereVisited(tombstones)
        if tombstones < 16 {
            unlockWaiters()
        } else {
            unlockWaiters(replacing: first, by: newest)
            Self.release(from: first, upTo: newest)
        }
        return listener != nil
    }

    /// Whether a handler that is not among these waiters, or a `hang`, waits here.
    func isWanted(besides waiters: Set<UInt>) -> Bool {
        if annotations.load(ordering: .relaxed) & Self.isLetGo != 0 { return true }
        guard let first = lockWaiters() else { return true }
        defer { unlockWaiters() }
        return Self.nodes(from: first).contains {
            isListening(Self.core($0)) && !waiters.contains(UInt(bitPattern: $0.toOpaque()))
        }
    }

    /// Releases nodes that have been taken out of a list, up to `end`, which stays.
    private static func release(from first: Unmanaged<Job>?, upTo end: Unmanaged<Job>? = nil) {
        var removed = first
        while let node = removed, node.toOpaque() != end?.toOpaque() {
            removed = node._withUnsafeGuaranteedRef { $0.next }
            node.release()
        }
    }

    /// Whether a node of this core's list is a reason to keep the producer working.
    func isListening(_ node: PromiseCore) -> Bool { !isWithdrawn(node) && !node.role.contains(.notListening) }

    /// Whether a node of this core's list no longer waits for this core, and is a tombstone. It may have run since, and
    /// may now wait for another core.
    private func isWithdrawn(_ node: PromiseCore) -> Bool {
        node.upstream.load(ordering: .relaxed) != address | Upstream.waiting
    }

    /// Counts a waiter of the list that has become a tombstone. Tombstones are removed when they outnumber the other
    /// nodes, so that the cost of a withdrawal does not depend on the length of the list.
    func noteWithdrawal() {
        let withdrawals = withdrawals.add(1, ordering: .relaxed).newValue
        guard Withdrawal.isSweepDue(withdrawals) else { return }
        if mayLockWaiters { return sweep() }
        guard Withdrawal.isSweepJustDue(withdrawals), let loop else { return }
        EventLoop.post(SweepJob(self), toLoopAt: loop) { self.settled == nil && self.root === self }
    }

    /// Whether this thread may lock the list, which must not be thinned out while the holder of the right to settle
    /// reads it. The holder for an externally settled promise has claimed it first, and `lockWaiters` detects that. Any
    /// other holder settles on the thread of the core's loop without claiming, so that only this thread may lock the
    /// list.
    var mayLockWaiters: Bool { role.contains(.externallySettled) || loop == EventLoop.addressOfThisThread }

    /// Removes the tombstones. Requires `mayLockWaiters`.
    func sweep() {
        guard let first = lockWaiters() else { return }
        sweepAndUnlock(first)
    }

    /// Removes the withdrawn waiters from a locked list.
    private func sweepAndUnlock(_ first: Unmanaged<Job>?) {
        Self.release(from: takeOutAndUnlock(first, isWithdrawn))
    }

    /// Removes waiters from a locked list and unlocks it.
    /// - Returns: the removed waiters, oldest first, with the references that the list held.
    func takeOutAndUnlock(
        _ first: Unmanaged<Job>?, _ isToGo: (PromiseCore) -> Bool
    ) -> Unmanaged<Job>? {
        var kept: Unmanaged<Job>?
        var last: Unmanaged<Job>?
        var removed: Unmanaged<Job>?
        var left = 0
        var visited = 0
        var rest = first
        while let node = rest {
            rest = node._withUnsafeGuaranteedRef { $0.next }
            visited += 1
            if isToGo(Self.core(node)) {
                node._withUnsafeGuaranteedRef { $0.next = removed }
                removed = node
            } else {
                if let last { last._withUnsafeGuaranteedRef { $0.next = node } } else { kept = node }
                last = node
                left += 1
                // The node that the shortcut leads to may have been removed.
                Self.watcher(node)?._withUnsafeGuaranteedRef { $0.shortcut = .none }
            }
        }
        EventLoop.nodesWereVisited(visited)
        last?._withUnsafeGuaranteedRef { $0.next = nil }
        withdrawals.store(Withdrawal.afterSweep(left), ordering: .relaxed)
        unlockWaiters(replacing: first, by: kept)
        return removed
    }

    /// Locks the list against threads that would take it; nodes can still be pushed. Requires `mayLockWaiters`.
    /// - Returns: the newest node; `nil` if the core is not pending, or is being settled.
    func lockWaiters() -> Unmanaged<Job>?? {
        var seen = state.load(ordering: .acquiring)
        while seen & (State.kindMask | State.isClaimed) == State.pending {
            if seen & State.isBusy != 0 {
                sched_yield()
                seen = state.load(ordering: .acquiring)
                continue
            }
            let (done, now) = state.weakCompareExchange(
                expected: seen, desired: seen | State.isBusy, ordering: .acquiringAndReleasing)
            if done { return .some(Self.waiters(seen)) }
            seen = now
        }
        return .none
    }

    func unlockWaiters() { state.bitwiseAnd(~State.isBusy, ordering: .releasing) }

    /// Unlocks the list, with `kept` in the place of `first` and all older nodes.
    private func unlockWaiters(replacing first: Unmanaged<Job>?, by kept: Unmanaged<Job>?) {
        var seen = state.load(ordering: .acquiring)
        if Self.waiters(seen)?.toOpaque() == first?.toOpaque() {
            let word = UInt(bitPattern: kept?.toOpaque()) | seen & ~State.pointerMask & ~State.isBusy
            let (done, now) = state.compareExchange(expected: seen, desired: word, ordering: .acquiringAndReleasing)
            if done { return }
            seen = now
        }
        // Newer nodes have been pushed, or a party has claimed the core. The newer nodes stay; the oldest of them is
        // linked to the kept ones.
        guard Self.waiters(seen)?.toOpaque() != first?.toOpaque() else {
            return unlockWaiters(replacing: first, by: kept)
        }
        for node in Self.nodes(from: Self.waiters(seen)) {
            let isLowest = node._withUnsafeGuaranteedRef { $0.next?.toOpaque() == first?.toOpaque() }
            guard isLowest else { continue }
            node._withUnsafeGuaranteedRef { $0.next = kept }
            break
        }
        unlockWaiters()
    }

    static func nodes(from first: Unmanaged<Job>?) -> some Sequence<Unmanaged<Job>> {
        sequence(state: first) { rest -> Unmanaged<Job>? in
            defer { rest = rest?._withUnsafeGuaranteedRef { $0.next } }
            return rest
        }
    }
}

/// The format of `PromiseCore.withdrawals`: the number of tombstones in the low 24 bits, and above them the power of
/// two that, times 16, is the number at which they are removed.
enum Withdrawal {
    static func isSweepDue(_ word: UInt32) -> Bool { word & 0xFF_FFFF >= 16 << (word >> 24) }

    /// True only when the number is reached, so that one sweep is requested.
    static func isSweepJustDue(_ word: UInt32) -> Bool { word & 0xFF_FFFF == 16 << (word >> 24) }

    /// The list is swept again after as many withdrawals as there are nodes left, and after 16 at least.
    static func afterSweep(_ left: Int) -> UInt32 {
        let power = max(0, Int.bitWidth - (left >> 4).leadingZeroBitCount)
        return UInt32(min(power, 19)) << 24
    }
}

/// Removes the tombstones of a list on the thread that owns it.
private final class SweepJob: Job {
    private let core: PromiseCore

    init(_ core: PromiseCore) {
        self.core = core
        super.init()
    }

    override func run() { core.sweep() }

    // The list is released with its core.
    override var isReportedUndelivered: Bool { false }
}
