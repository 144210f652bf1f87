import Reactor
import Synchronization

/// Measures how long nothing on the loop could have settled the promise.
struct HangWatch {
    /// The time until the report, in nanoseconds of real time. A pool or Dispatch settles most promises sooner.
    static let gracePeriod = Atomic<Int64>(1_000_000_000)

    /// The start of the measurement, in real time; 0 if it has not begun.
    private var began: Int64 = 0
    private(set) var isWatching = true

    fileprivate static var now: Int64 { LoopClock.monotonic.now.nanoseconds }

    /// Resets the measurement, because something on the loop can settle the promise.
    mutating func restart() { began = 0 }

    mutating func end() { isWatching = false }

    /// Returns true, at most once, when the report is due. An expired time limit ends the grace period.
    mutating func isOver(isTimedOut: Bool) -> Bool {
        let now = Self.now
        if began == 0 { began = now }
        guard isTimedOut || now - began >= Self.gracePeriod.load(ordering: .relaxed) else { return false }
        end()
        return true
    }

    var remaining: Duration {
        .nanoseconds(max(began + Self.gracePeriod.load(ordering: .relaxed) - Self.now, 0))
    }
}

/// A `hang` in a pool's job, which may wait for a job that no free thread of the pool can run.
///
/// Apart from cancellation, that is certain when each thread of the pool waits in a `hang` without a time limit, on an
/// otherwise idle loop, for a promise that only a queued job of the pool settles. A promise that can settle in another
/// way, such as a race with a resolver's promise, does not count.
struct PoolWait {
    private let pool: ThreadPoolWorkers
    private let loop: LoopRef
    /// The real time at which all the pool's threads had begun to wait in this way, and the pool's number for that
    /// wait.
    private var began: (moment: Int64, number: Int)?

    /// Returns `nil` on a thread that belongs to no pool.
    static func ofThisThread(_ loop: LoopRef) -> PoolWait? {
        guard let pool = loop.borrow({ $0.poolOfThread }) else { return nil }
        let wait = PoolWait(pool: pool, loop: loop)
        // A `hang` further down the stack waits for this one.
        wait.end()
        return wait
    }

    /// Returns the time until the report, one second in total. In that time, a thread whose job has just run wakes.
    /// `nil` if not all threads wait.
    mutating func timeUntilReport(of core: PromiseCore) -> Duration? {
        guard loop.borrow({ $0.waitsForOthersOnly }), StackSearch.isHeldUp(core, by: pool) else {
            end()
            began = nil
            return nil
        }
        guard let number = pool.beginWait(loop.address) else {
            began = nil
            return nil
        }
        let now = HangWatch.now
        let begin = began.flatMap { $0.number == number ? $0.moment : nil } ?? now
        began = (begin, number)
        return .nanoseconds(max(begin + HangWatch.gracePeriod.load(ordering: .relaxed) - now, 0))
    }

    func end() { pool.endWait(loop.address) }
}

/// The reports about `hang`. Each call site gets one about a wait that cannot end, and one about nesting.
enum HangReports {
    enum Kind { case stalled, deadlock, nested }

    private static let reported = LockedValue<[Bool: Set<CallSite>]>.ofProcess([:])

    @inline(never)
    static func report(_ kind: Kind, _ core: PromiseCore, _ what: () -> String, _ callSite: CallSite) {
        guard reported.withLock({ $0[kind == .nested, default: []].insert(callSite).inserted }) else { return }
        let promise = core.provenance(type: what(), callSite: core.callSite)
        switch kind {
        case .stalled: conf.log(.hangStalled(promise, at: callSite))
        case .deadlock: conf.log(.hangDeadlock(promise, at: callSite))
        case .nested: conf.log(.hangNested(promise, at: callSite))
        }
    }
}
