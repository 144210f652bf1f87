import Glibc

/// How many reports with the same key pass in a stretch of time.
package struct ReportLimit: Hashable, Sendable {
    package var burst: Int
    /// In nanoseconds.
    package var period: Int64

    package init(burst: Int, period: Int64) {
        self.burst = max(burst, 1)
        self.period = max(period, 1)
    }

    package static var standard: ReportLimit { ReportLimit(burst: 10, period: 1_000_000_000) }
}

/// Counts reports by key, and says which of them exceed the limit. By the monotonic clock: reports come from any thread.
package struct ReportCounts<Key: Hashable & Sendable>: Sendable {
    private struct Count {
        var began: Int64
        var passed = 0
        var suppressed = 0
    }

    /// `nil` stands for all keys that there is no room for.
    private var counts: [Key?: Count] = [:]
    /// Lines of a program are not many; if they are made at run time, they share a count.
    private static var mostKeys: Int { 1024 }
    /// When room may be made again, once there is none: looking through all counts for every report of a new key would cost
    /// more than making it.
    private var fullUntil = Int64.min

    package init() {}

    /// Whether anything has been suppressed and not been told.
    package var hasSuppressed: Bool { counts.values.contains { $0.suppressed > 0 } }

    /// When the first period ends in which anything was suppressed.
    package func nextEnd(_ limit: ReportLimit) -> Int64? {
        counts.values.lazy.filter { $0.suppressed > 0 }.map { $0.began &+ limit.period }.min()
    }

    /// Whether a report passes at the moment `now`, and how many before it, of a period that is over, did not.
    package mutating func admit(_ key: Key, _ limit: ReportLimit, now: Int64) -> (passes: Bool, suppressedBefore: Int) {
        var place: Key? = key
        if counts[key] == nil && counts.count >= Self.mostKeys && !makeRoom(limit, now: now) { place = nil }
        var count = counts[place] ?? Count(began: now)
        var before = 0
        if now &- count.began >= limit.period {
            before = count.suppressed
            count = Count(began: now)
        }
        let passes = count.passed < limit.burst
        if passes { count.passed += 1 } else { count.suppressed += 1 }
        counts[place] = count
        return (passes, before)
    }

    /// Removes the counts whose period is over and of which nothing is to be told. Returns whether there is room then.
    private mutating func makeRoom(_ limit: ReportLimit, now: Int64) -> Bool {
        guard now >= fullUntil else { return false }
        counts = counts.filter { $0.value.suppressed > 0 || now &- $0.value.began < limit.period }
        if counts.count < Self.mostKeys { return true }
        let ends = counts.values.lazy.filter { $0.suppressed == 0 }.map { $0.began &+ limit.period }
        fullUntil = ends.min() ?? now &+ limit.period
        return false
    }

    /// How many were suppressed of each key in periods that are over at `now`; of all if that is `nil`. Each is told once.
    package mutating func takeSuppressed(_ limit: ReportLimit, now: Int64?) -> [(key: Key?, count: Int)] {
        var taken: [(key: Key?, count: Int)] = []
        for (key, count) in counts where count.suppressed > 0 {
            if let now, now &- count.began < limit.period { continue }
            taken.append((key, count.suppressed))
            counts[key] = nil
        }
        return taken
    }
}

/// Reports of which only some pass, so that whoever causes them, a peer for instance, decides neither how long the log gets
/// nor how long the loop writes it. What does not pass is counted by key, and told when the period is over: with the next
/// report of that key, or by a thread that is there until all has been told, or at exit(3).
package final class LimitedReports<Key: Hashable & Sendable>: Sendable {
    private struct State: Sendable {
        var counts = ReportCounts<Key>()
        var limit: ReportLimit? = .standard
        /// Whether a thread is there, in this process, that tells.
        var hasThread = false
    }

    private let state = LockedValue(State())
    private let tell: @Sendable (Key?, Int) -> Void
    private let forkGeneration: CInt

    /// `tell` gets a key, `nil` for those beyond the number that is kept, and how many of its reports did not pass. Any
    /// thread, and without a lock.
    package init(tell: @escaping @Sendable (Key?, Int) -> Void) {
        ForkDetector.watch()
        forkGeneration = ForkDetector.generation
        self.tell = tell
    }

    /// `nil`: all pass.
    package var limit: ReportLimit? {
        get { state.withLock { $0.limit } }
        set { state.withLock { $0.limit = newValue } }
    }

    /// Whether a report is to be made.
    package func admit(_ key: Key) -> Bool {
        // Another thread of the parent's may have held the lock when it forked.
        if ForkDetector.generation != forkGeneration { return true }
        let now = LoopClock.monotonic.now.nanoseconds
        let (passes, before, needsThread) = state.withLock { state in
            guard let limit = state.limit else { return (true, 0, false) }
            let (passes, before) = state.counts.admit(key, limit, now: now)
            let needsThread = !passes && !state.hasThread
            if needsThread { state.hasThread = true }
            return (passes, before, needsThread)
        }
        if before > 0 { tell(key, before) }
        if needsThread { startThread() }
        return passes
    }

    /// Tells of all that did not pass so far.
    package func tellAll() {
        if ForkDetector.generation != forkGeneration { return }
        let suppressed = state.withLock { $0.counts.takeSuppressed($0.limit ?? .standard, now: nil) }
        for (key, count) in suppressed { tell(key, count) }
    }

    private func startThread() {
        var handle = pthread_t()
        // Without a thread it is told with the next report of the key, or at the end.
        if LibraryThread.start("reports", &handle, LibraryThread.create, { self.tellInTime() }) == 0 {
            pthread_detach(handle)
        } else {
            state.withLock { $0.hasThread = false }
        }
    }

    private func tellInTime() {
        while true {
            let now = LoopClock.monotonic.now.nanoseconds
            let (suppressed, next) = state.withLock { state in
                let limit = state.limit ?? .standard
                let suppressed = state.counts.takeSuppressed(limit, now: state.limit == nil ? nil : now)
                let next = state.counts.nextEnd(limit)
                if next == nil && suppressed.isEmpty { state.hasThread = false }
                return (suppressed, next)
            }
            for (key, count) in suppressed { tell(key, count) }
            if suppressed.isEmpty && next == nil { return }
            // A limit that is shortened meanwhile is noticed a second later.
            let pause = min(max((next ?? now) &- now, 0), 1_000_000_000)
            var time = timespec(tv_sec: Int(pause / 1_000_000_000), tv_nsec: Int(pause % 1_000_000_000))
            clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nil)
        }
    }
}
