import Glibc
import Reactor
import Synchronization

// The list of a core's waiters, as others see it than who takes it to settle: whether anybody waits, and how places are
// cleared that have become void.

extension PromiseCore {
    /// Whether a handler, or a `hang`, waits here. While somebody settles the core, it counts as wanted.
    var isWanted: Bool {
        guard let first = lockWaiters() else { return true }
        // Who withdraws one after the other asks this each time, and would go past all that went before: so void places that
        // are newer than all others are cleared once there are some.
        var newest = first
        var voids = 0
        while let node = newest, isWithdrawn(Self.core(node)) {
            newest = node._withUnsafeGuaranteedRef { $0.next }
            voids += 1
        }
        let isWanted = hasListener(from: newest)
        EventLoop.nodesWereVisited(voids)
        if voids < 16 {
            unlockWaiters()
        } else {
            unlockWaiters(replacing: first, by: newest)
            Self.letGo(from: first, upTo: newest)
        }
        return isWanted
    }

    /// Releases nodes that have been taken out of a list, up to the one that stays.
    private static func letGo(from first: Unmanaged<Job>?, upTo end: Unmanaged<Job>? = nil) {
        var gone = first
        while let node = gone, node.toOpaque() != end?.toOpaque() {
            gone = node._withUnsafeGuaranteedRef { $0.next }
            node.release()
        }
    }

    /// Whether a node of our list is a reason to go on.
    func isListening(_ node: PromiseCore) -> Bool { !isWithdrawn(node) && !node.role.contains(.notListening) }

    /// Whether a node of our list does not wait for us any more, and is only there for its place. It may have run since,
    /// and wait for something else.
    private func isWithdrawn(_ node: PromiseCore) -> Bool {
        node.upstream.load(ordering: .relaxed) != address | Upstream.waiting
    }

    /// A waiter's place in the list has become void. Places are cleared when they outnumber the others, so that
    /// withdrawing costs the same however long the list is.
    func noteWithdrawal() {
        let withdrawals = withdrawals.add(1, ordering: .relaxed).newValue
        guard Withdrawal.isSweepDue(withdrawals) else { return }
        if mayLockWaiters { return sweep() }
        guard Withdrawal.isSweepJustDue(withdrawals), let loop else { return }
        EventLoop.post(SweepJob(self), toLoopAt: loop) { self.settled == nil && self.root === self }
    }

    /// Whether this thread may look at the list, which must not be thinned out while the holder of the right to settle
    /// looks at it. For a promise made by hand that one has claimed it before, and `lockWaiters` finds that out; any
    /// other settles on its loop's thread without claiming, so that only this thread is shut out.
    /// Nor is it let in once the loop is ending, when other threads discard, and settle, what the loop would have run.
    var mayLockWaiters: Bool {
        role.contains(.externallySettled)
            || loop == EventLoop.addressOfThisThread && !EventLoop.ofCurrentThread.hasEnded
    }

    /// Clears the void places away. Only who `mayLockWaiters`.
    func sweep() {
        guard let first = lockWaiters() else { return }
        sweepAndUnlock(first)
    }

    /// Takes the withdrawn waiters out of a locked list.
    private func sweepAndUnlock(_ first: Unmanaged<Job>?) {
        Self.letGo(from: takeOutAndUnlock(first, isWithdrawn))
    }

    /// Takes waiters out of a locked list, which it unlocks; they are answered, the oldest first, with the references that
    /// the list held.
    func takeOutAndUnlock(
        _ first: Unmanaged<Job>?, _ isToGo: (PromiseCore) -> Bool
    ) -> Unmanaged<Job>? {
        var kept: Unmanaged<Job>?
        var last: Unmanaged<Job>?
        var gone: Unmanaged<Job>?
        var left = 0
        var visited = 0
        var rest = first
        while let node = rest {
            rest = node._withUnsafeGuaranteedRef { $0.next }
            visited += 1
            if isToGo(Self.core(node)) {
                node._withUnsafeGuaranteedRef { $0.next = gone }
                gone = node
            } else {
                if let last { last._withUnsafeGuaranteedRef { $0.next = node } } else { kept = node }
                last = node
                left += 1
                // What it leads to may be gone.
                Self.watcher(node)?._withUnsafeGuaranteedRef { $0.shortcut = .none }
            }
        }
        EventLoop.nodesWereVisited(visited)
        last?._withUnsafeGuaranteedRef { $0.next = nil }
        withdrawals.store(Withdrawal.afterSweep(left), ordering: .relaxed)
        unlockWaiters(replacing: first, by: kept)
        return gone
    }

    /// Keeps whoever would take the list waiting, and gives its newest node; later ones may be pushed all the same.
    /// `nil` if the core is not pending, or is being settled. Only who `mayLockWaiters`.
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

    /// The same, with `kept` in the place of `first` and all below it.
    private func unlockWaiters(replacing first: Unmanaged<Job>?, by kept: Unmanaged<Job>?) {
        var seen = state.load(ordering: .acquiring)
        if Self.waiters(seen)?.toOpaque() == first?.toOpaque() {
            let word = UInt(bitPattern: kept?.toOpaque()) | seen & ~State.pointerMask & ~State.isBusy
            let (done, now) = state.compareExchange(expected: seen, desired: word, ordering: .acquiringAndReleasing)
            if done { return }
            seen = now
        }
        // Newer nodes have come on top, or somebody has claimed the core. The former stay; below the oldest of them comes
        // what we have kept.
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

/// How `PromiseCore.withdrawals` counts: places that are void in the low 24 bits, and above them the power of two, times 16,
/// at which they are cleared away.
enum Withdrawal {
    static func isSweepDue(_ word: UInt32) -> Bool { word & 0xFF_FFFF >= 16 << (word >> 24) }

    /// The first time, so that it is asked for once.
    static func isSweepJustDue(_ word: UInt32) -> Bool { word & 0xFF_FFFF == 16 << (word >> 24) }

    /// As many as are left may become void before the next sweep, and 16 at least.
    static func afterSweep(_ left: Int) -> UInt32 {
        let power = max(0, Int.bitWidth - (left >> 4).leadingZeroBitCount)
        return UInt32(min(power, 19)) << 24
    }
}

/// Clears void places from a list on the thread whose they are.
private final class SweepJob: Job {
    private let core: PromiseCore

    init(_ core: PromiseCore) {
        self.core = core
        super.init()
    }

    override func run() { core.sweep() }

    // The list goes with its core.
    override var isReportedUndelivered: Bool { false }
}
