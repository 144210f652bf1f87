import Glibc
import Reactor
import Synchronization

// How a promise is cancelled, and how that climbs to what it waits for.
//
// An operation belongs to one thread, and is cancelled there; a promise made by hand is cancelled wherever it could be
// settled. A waiter that is withdrawn leaves its operation at once, but its place in the list it stands in only when
// that is swept or delivered: other threads may be pushing onto it.

extension Core {
    /// Rejects this core with `PromiseError.cancelled`, ends the work that would have settled it, and does the same to what
    /// it waits for, if nobody else waits there. If it has settled, nothing happens.
    ///
    /// Any thread; what belongs to another thread is cancelled there, later.
    func cancel() { root.cancel(root === self ? .itself : .byLink) }

    /// Who asks for a root's cancellation, and what it means.
    enum Request {
        /// The user, of the promise that this is.
        case itself
        /// The user, of a promise that has been linked to this one.
        case byLink
        /// Who has waited for it, and does not any more.
        case unwanted
    }

    func cancel(_ request: Request) {
        // Not one inside the other: a chain may be a million long.
        var source = cancelAlone(request)
        while let next = source { source = next.cancelAlone(.unwanted) }
    }

    /// Answers what it was waiting for, if that is to be cancelled next.
    private func cancelAlone(_ request: Request) -> Core? {
        if role.contains(.madeByHand) {
            guard request != .unwanted || !isWanted, stopProducing() else { return nil }
            storeError(PromiseError.cancelled, placeOfMaking)
            retain()
            settle(State.rejected)
            return nil
        }
        guard isOpen, let loop else { return nil }
        if loop == EventLoop.addressOfThisThread {
            // While it ends, other threads discard what it would have run, and are the ones to settle that.
            if EventLoop.ofThisThread.hasEnded { return nil }
            return cancelHere(request)
        }
        // While it is pending, the loop that it belongs to is still there.
        let job = CancelJob(self, request)
        EventLoop.post(job, toLoopAt: loop) { self.settled == nil && self.root === self }
        return nil
    }

    private func cancelHere(_ request: Request) -> Core? {
        guard request != .unwanted || !isWanted else { return nil }
        // What a handler has returned settles this core in its place.
        let word = upstream.load(ordering: .relaxed)
        let isAdopting = word & Upstream.mark == Upstream.adopted
        if isAdopting && request == .itself && tellOwnWaitersOnly() { return nil }
        let producer = isAdopting ? Self.core(word) : self
        switch producer.stop() {
        case .refused: return nil
        case .willEnd(let source): return source
        case .stopped(let source):
            // It may be running just now, and end later.
            if producer !== self { producer.state.bitwiseOr(State.isClaimed, ordering: .relaxed) }
            // What the operation's end has run may have been faster.
            if isOpen && settled == nil {
                storeError(PromiseError.cancelled, nil)
                retain()
                settle(State.rejected)
            }
            return source
        }
    }

    /// For a promise whose handler returned another, which others wait for too: those who wait for this one are told that it
    /// was cancelled, and the other goes on, for the rest. False if there are no others, and nothing has been done.
    ///
    /// The two are one core, so this promise stays pending and will show the outcome of the other one.
    private func tellOwnWaitersOnly() -> Bool {
        guard let first = lockWaiters() else { return false }
        let isShared = Self.nodes(from: first).contains { node in
            let waiter = Self.core(node)
            return waiter.cameByLink && waiter.isListening
        }
        guard isShared else {
            unlockWaiters()
            return false
        }
        var oldest = takeOutAndUnlock(first) { !$0.cameByLink }
        while let node = oldest {
            oldest = node._withUnsafeGuaranteedRef { $0.next }
            let word = Core.cancellation()
            guard !Self.deliver(node, from: address, word) else { continue }
            // Withdrawn meanwhile, or before.
            Core.release(upstream: word)
            node.release()
        }
        return true
    }

    private var isListening: Bool {
        upstream.load(ordering: .relaxed) != Upstream.taken && !role.contains(.notListening)
    }

    /// What becomes of a producer that is to stop; with the source that it was waiting for, if that is to be told next.
    enum Stopping {
        /// It cannot be stopped.
        case refused
        /// It has ended, without settling anything.
        case stopped(Core?)
        /// It is told of the cancellation like of any rejection, by a job, and settles then.
        case willEnd(Core?)

        var source: Core? {
            switch self {
            case .refused: nil
            case .stopped(let source), .willEnd(let source): source
            }
        }
    }

    /// Ends what would settle this core, on its own thread.
    func stop() -> Stopping {
        let word = upstream.load(ordering: .acquiring)
        if word == 0 { return stopProducing() ? .stopped(nil) : .refused }
        // Still counted: it is about to be told.
        if word == Upstream.taken { return countsAsWaiting ? .willEnd(nil) : .stopped(nil) }
        // What must run in any case, unless it has already.
        let willRun = role.contains(.runsWhenCancelled) && !isForwarding
        guard
            word & Upstream.mark == Upstream.waiting,
            upstream.compareExchange(expected: word, desired: Upstream.taken, ordering: .acquiringAndReleasing)
                .exchanged
        else {
            // It has settled, on another thread perhaps, and we are on our way to run.
            if willRun {
                Core.release(upstream: upstream.exchange(Core.cancellation(), ordering: .acquiring))
                return .willEnd(nil)
            }
            dropOperation()
            waitsNoMore()
            return .stopped(nil)
        }
        let source = Self.core(word)
        // Who came by a link waits for a promise that another one has adopted, and which so is still wanted.
        let next = role.contains(.shielding) || cameByLink ? nil : source
        defer { source.noteWithdrawal() }
        if willRun {
            EventLoop.ofThisThread.enqueue(CancelledRun(self))
            return .willEnd(next)
        }
        if isForwarding { isForwarding = false } else { code(self, .drop) }
        waitsNoMore()
        return .stopped(next)
    }

    private func waitsNoMore() {
        guard countsAsWaiting else { return }
        countsAsWaiting = false
        EventLoop.ofThisThread.handlerWaitsNoMore()
    }

    /// The word of a node whose source has been cancelled.
    fileprivate static func cancellation() -> UInt {
        UInt(bitPattern: Unmanaged.passRetained(cancelled).toOpaque()) | Upstream.rejected
    }

    private static let cancelled: Core = {
        let core = Core(error: PromiseError.cancelled, origin: nil)
        core.markHandled()
        return core
    }()

    /// Takes this waiter of this thread back. If its source has settled, nothing happens: it has run, or is about to.
    ///
    /// Whoever calls this must hold the core that the waiter was attached to.
    func withdraw() {
        let word = upstream.load(ordering: .acquiring)
        guard
            word & Upstream.mark == Upstream.waiting,
            upstream.compareExchange(expected: word, desired: Upstream.taken, ordering: .acquiringAndReleasing)
                .exchanged
        else { return }
        code(self, .drop)
        let source = Self.core(word)
        if source.mayLockWaiters { source.sweep() } else { source.noteWithdrawal() }
    }

    // MARK: The list of waiters, as others than its taker see it

    /// Whether a handler, or a `hang`, waits here. While somebody settles the core, it counts as wanted.
    private var isWanted: Bool {
        guard let first = lockWaiters() else { return true }
        let isWanted = Self.nodes(from: first).contains { Self.core($0).isListening }
        unlockWaiters()
        return isWanted
    }

    /// A waiter's place in the list has become void. Places are cleared when they outnumber the others, so that
    /// withdrawing costs the same however long the list is.
    private func noteWithdrawal() {
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
    private var mayLockWaiters: Bool {
        role.contains(.madeByHand) || loop == EventLoop.addressOfThisThread && !EventLoop.ofThisThread.hasEnded
    }

    /// Clears the void places away. Only who `mayLockWaiters`.
    fileprivate func sweep() {
        guard let first = lockWaiters() else { return }
        sweepAndUnlock(first)
    }

    /// Takes the withdrawn waiters out of a locked list.
    private func sweepAndUnlock(_ first: Unmanaged<Job>?) {
        var gone = takeOutAndUnlock(first) { $0.upstream.load(ordering: .relaxed) == Upstream.taken }
        while let node = gone {
            gone = node._withUnsafeGuaranteedRef { $0.next }
            node.release()
        }
    }

    /// Takes waiters out of a locked list, which it unlocks; they are answered, the oldest first, with the references that
    /// the list held.
    private func takeOutAndUnlock(
        _ first: Unmanaged<Job>?, _ isToGo: (Core) -> Bool
    ) -> Unmanaged<Job>? {
        var kept: Unmanaged<Job>?
        var last: Unmanaged<Job>?
        var gone: Unmanaged<Job>?
        var left = 0
        var rest = first
        while let node = rest {
            rest = node._withUnsafeGuaranteedRef { $0.next }
            if isToGo(Self.core(node)) {
                node._withUnsafeGuaranteedRef { $0.next = gone }
                gone = node
            } else {
                if let last { last._withUnsafeGuaranteedRef { $0.next = node } } else { kept = node }
                last = node
                left += 1
            }
        }
        last?._withUnsafeGuaranteedRef { $0.next = nil }
        withdrawals.store(Withdrawal.afterSweep(left), ordering: .relaxed)
        unlockWaiters(replacing: first, by: kept)
        return gone
    }

    /// Keeps whoever would take the list waiting, and gives its newest node; later ones may be pushed all the same.
    /// `nil` if the core is not pending, or is being settled. Only who `mayLockWaiters`.
    private func lockWaiters() -> Unmanaged<Job>?? {
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

    private func unlockWaiters() { state.bitwiseAnd(~State.isBusy, ordering: .releasing) }

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

    private static func nodes(from first: Unmanaged<Job>?) -> some Sequence<Unmanaged<Job>> {
        sequence(state: first) { rest -> Unmanaged<Job>? in
            defer { rest = rest?._withUnsafeGuaranteedRef { $0.next } }
            return rest
        }
    }
}

/// How `Core.withdrawals` counts: places that are void in the low 24 bits, and above them the power of two, times 16,
/// at which they are cleared away.
private enum Withdrawal {
    static func isSweepDue(_ word: UInt32) -> Bool { word & 0xFF_FFFF >= 16 << (word >> 24) }

    /// The first time, so that it is asked for once.
    static func isSweepJustDue(_ word: UInt32) -> Bool { word & 0xFF_FFFF == 16 << (word >> 24) }

    /// As many as are left may become void before the next sweep, and 16 at least.
    static func afterSweep(_ left: Int) -> UInt32 {
        let power = max(0, Int.bitWidth - (left >> 4).leadingZeroBitCount)
        return UInt32(min(power, 19)) << 24
    }
}

/// Cancels a promise on the thread that it belongs to.
private final class CancelJob: Job {
    private let core: Core
    private let request: Core.Request

    init(_ core: Core, _ request: Core.Request) {
        self.core = core
        self.request = request
        super.init()
    }

    override func run() { core.root.cancel(request) }
}

/// Clears void places from a list on the thread whose they are.
private final class SweepJob: Job {
    private let core: Core

    init(_ core: Core) {
        self.core = core
        super.init()
    }

    override func run() { core.sweep() }
}

/// Calls the body if the promise was cancelled; see `Resolver.onCancel`.
struct OnCancel: Operation {
    typealias Input = Void
    typealias Output = Void
    let body: () -> Void
    // It is not counted among the handlers that wait, which keep the loop object for who settles the promise.
    private let loop = EventLoop.ofThisThread

    init(_ body: @escaping () -> Void) { self.body = body }

    func run(_ source: Source<Void>, _ core: Core) {
        if (source.core as? HandMadeCore)?.isCancelled == true { body() }
        core.finish(())
    }
}

/// Runs an operation that must run in any case, with a cancellation as its source's outcome. The node itself still has
/// its place in the list of the source.
private final class CancelledRun: Job {
    private let core: Core

    init(_ core: Core) {
        self.core = core
        super.init()
    }

    override func run() {
        core.upstream.store(Core.cancellation(), ordering: .relaxed)
        core.retain()
        core.runAndRelease()
    }

    override func discardAndRelease() {
        core.code(core, .drop)
        core.producerIsGone()
        super.discardAndRelease()
    }
}
