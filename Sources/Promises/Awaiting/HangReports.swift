import Reactor
import Synchronization

// The reports about a `hang` that can never return.

/// Measures how long nothing on the loop of a `hang` could have settled its promise.
struct HangWatch {
    /// The time after which that is reported, in nanoseconds of real time. A thread of a pool or of Dispatch settles
    /// most promises sooner.
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

/// The reports of calls of `hang` that cannot end, one per call site.
enum HangReports {
    private static let reported = LockedValue<Set<CallSite>>.ofProcess([])

    private static func isFirst(of callSite: CallSite) -> Bool { reported.withLock { $0.insert(callSite).inserted } }

    @inline(never)
    static func reportStuck(_ core: PromiseCore, _ what: () -> String, _ callSite: CallSite) {
        guard isFirst(of: callSite) else { return }
        conf.log(.hangStalled(core.provenance(type: what(), callSite: core.root.callSite), at: callSite))
    }

    @inline(never)
    static func reportDeadlock(_ core: PromiseCore, _ what: () -> String, _ callSite: CallSite) {
        guard isFirst(of: callSite) else { return }
        conf.log(.hangDeadlock(core.provenance(type: what(), callSite: core.root.callSite), at: callSite))
    }
}
