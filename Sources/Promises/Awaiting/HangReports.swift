import Reactor
import Synchronization

// What a `hang` has to say of a promise that it waits for in vain.

/// For how long nothing on the loop of a `hang` could have settled its promise.
struct HangWatch {
    /// How long that must be before it is reported, in nanoseconds of real time: a thread of a pool or of Dispatch's settles
    /// most promises in less.
    static let patience = Atomic<Int64>(1_000_000_000)

    /// When it began, by the real clock; 0: it has not.
    private var began: Int64 = 0
    /// Whether it has not been reported yet.
    private(set) var isWatching = true

    private static var now: Int64 { LoopClock.monotonic.now.nanoseconds }

    /// Something on the loop can settle the promise.
    mutating func restart() { began = 0 }

    /// Whether to report now that nothing can; true once at most. A time-out that has passed is patience enough.
    mutating func isOver(isTimedOut: Bool) -> Bool {
        let now = Self.now
        if began == 0 { began = now }
        guard isTimedOut || now - began >= Self.patience.load(ordering: .relaxed) else { return false }
        isWatching = false
        return true
    }

    /// What is left of the patience.
    var remaining: Duration {
        .nanoseconds(max(began + Self.patience.load(ordering: .relaxed) - Self.now, 0))
    }
}

extension PromiseCore {
    @inline(never)
    func reportStuck(_ what: () -> String, _ caller: CallSite) {
        guard HangReports.isFirst(of: caller) else { return }
        conf.log(.hangStalled(provenance(type: what(), origin: root.creationSite), at: caller))
    }

    @inline(never)
    func reportDeadlock(_ what: () -> String, _ caller: CallSite) {
        guard HangReports.isFirst(of: caller) else { return }
        conf.log(.hangDeadlock(provenance(type: what(), origin: root.creationSite), at: caller))
    }

    /// Whether what settles this core waits for a handler that is running further down this thread's stack. In a handler only:
    /// an operation of this thread that has been taken out, and has not settled its core, is on the stack.
    var isHeldUpByThisStack: Bool {
        var limit = HangReports.longestSearch
        return isHeldUp(EventLoop.addressOfThisThread, &limit)
    }

    /// The same, looking at `limit` cores at most; false beyond.
    func isHeldUp(_ here: UnsafeMutableRawPointer, _ limit: inout Int) -> Bool {
        var core = root
        while limit > 0 {
            limit -= 1
            // Any other is settled by another thread, by a resolver, or by a time-out.
            guard core.loop == here, core.role.isDisjoint(with: [.externallySettled, .hasDeadline]) else {
                return false
            }
            let word = core.upstream.load(ordering: .acquiring)
            if word == 0 { return core.areSourcesHeldUp(here, &limit) }
            switch word & Upstream.mark {
            // The source is there as long as this thread does not run what waits for it: see `Upstream`.
            case Upstream.waiting: core = Self.core(word).root
            case Upstream.adopted: core = Self.core(word)
            // One that is still counted has been cancelled, and is about to be told.
            case Upstream.taken: return core.settled == nil && !core.countsAsWaiting
            default: return false
            }
        }
        return false
    }
}

/// The places that have been reported.
private enum HangReports {
    static var longestSearch: Int { 1000 }

    private static let reported = LockedValue<Set<CallSite>>([])

    static func isFirst(of caller: CallSite) -> Bool { reported.withLock { $0.insert(caller).inserted } }
}
