import Reactor
import Synchronization

// The reports about a `hang` that can never return.

/// Measures how long nothing on the loop of a `hang` could have settled its promise.
struct HangWatch {
    /// How long that must last before it is reported, in nanoseconds of real time. A thread of a pool or of Dispatch
    /// settles most promises in less.
    static let gracePeriod = Atomic<Int64>(1_000_000_000)

    /// When the measurement began, by the real clock; 0 if it has not begun.
    private var began: Int64 = 0
    /// Whether it has not been reported yet.
    private(set) var isWatching = true

    private static var now: Int64 { LoopClock.monotonic.now.nanoseconds }

    /// Restarts the measurement: something on the loop can settle the promise.
    mutating func restart() { began = 0 }

    /// Whether to report now that nothing can settle the promise; true at most once. After a time limit has expired,
    /// there is no further grace period.
    mutating func isOver(isTimedOut: Bool) -> Bool {
        let now = Self.now
        if began == 0 { began = now }
        guard isTimedOut || now - began >= Self.gracePeriod.load(ordering: .relaxed) else { return false }
        isWatching = false
        return true
    }

    /// The rest of the grace period.
    var remaining: Duration {
        .nanoseconds(max(began + Self.gracePeriod.load(ordering: .relaxed) - Self.now, 0))
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

    /// Whether a handler that is running further down this thread's stack must return before this core can settle. Call
    /// it only in a handler: an operation of this thread that has been taken out, and has not settled its core, is on
    /// the stack.
    var isHeldUpByThisStack: Bool {
        var limit = HangReports.longestSearch
        return isHeldUp(EventLoop.addressOfThisThread, &limit)
    }

    /// The search behind `isHeldUpByThisStack`. Looks at no more than `limit` cores, and returns `false` beyond that.
    func isHeldUp(_ here: UnsafeMutableRawPointer, _ limit: inout Int) -> Bool {
        var core = root
        while limit > 0 {
            limit -= 1
            // All other cores are settled by another thread, by a resolver, or by a time limit.
            guard core.loop == here, core.role.isDisjoint(with: [.externallySettled, .hasDeadline]) else {
                return false
            }
            let word = core.upstream.load(ordering: .acquiring)
            if word == 0 { return core.areSourcesHeldUp(here, &limit) }
            switch word & Upstream.mark {
            // The source exists as long as this thread does not run its waiter: see `Upstream`.
            case Upstream.waiting: core = Self.core(word).root
            case Upstream.adopted: core = Self.core(word)
            // A core that is still counted has been cancelled, and is about to be notified.
            case Upstream.taken: return core.settled == nil && !core.countsAsWaiting
            default: return false
            }
        }
        return false
    }
}

/// The call sites that have been reported.
private enum HangReports {
    static var longestSearch: Int { 1000 }

    private static let reported = LockedValue<Set<CallSite>>([])

    static func isFirst(of caller: CallSite) -> Bool { reported.withLock { $0.insert(caller).inserted } }
}
