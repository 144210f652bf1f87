import ReactorLibc

/// A struct, because each read of a bare closure from generic storage adds a wrapper, and a call passes through all
/// wrappers.
package struct ReportHandler<Report>: Sendable {
    package let call: @Sendable (Report) -> Void

    package init(_ call: @escaping @Sendable (Report) -> Void) { self.call = call }
}

/// Reports per key and period.
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

/// Counts reports by key, and decides which ones exceed the limit. Uses the monotonic clock, since reports come from
/// any thread.
package struct ReportCounts<Key: Hashable & Sendable>: Sendable {
    private struct Count {
        var began: Int64
        var passed = 0
        var suppressed = 0
    }

    /// Keys beyond `mostKeys` share the key `nil`.
    private var counts: [Key?: Count] = [:]
    /// The most separate keys. A program has few lines, but may create keys at run time.
    private static var mostKeys: Int { 1024 }
    /// The earliest expiry of a count while the table is full. Searching all counts for each new key would cost more
    /// than the report.
    private var fullUntil = Int64.min

    package init() {}

    /// Returns the end of the first period with a suppressed report.
    package func nextEnd(_ limit: ReportLimit) -> Int64? {
        counts.values.lazy.filter { $0.suppressed > 0 }.map { $0.began &+ limit.period }.min()
    }

    /// - Returns: whether the report passes, and how many reports with the key in `place` were suppressed in an earlier
    ///   period.
    package mutating func admit(_ key: Key, _ limit: ReportLimit, now: Int64) -> (
        passes: Bool, suppressedBefore: Int, place: Key?
    ) {
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
        return (passes, before, place)
    }

    /// Removes the counts of ended periods without suppressed reports. Returns true if there is room.
    private mutating func makeRoom(_ limit: ReportLimit, now: Int64) -> Bool {
        guard now >= fullUntil else { return false }
        counts = counts.filter { $0.value.suppressed > 0 || now &- $0.value.began < limit.period }
        if counts.count < Self.mostKeys { return true }
        let ends = counts.values.lazy.filter { $0.suppressed == 0 }.map { $0.began &+ limit.period }
        fullUntil = ends.min() ?? now &+ limit.period
        return false
    }

    /// Takes out the suppressed reports' numbers by key, for periods that have ended at `now`, or all if `now` is
    /// `nil`.
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

/// Limits reports, so a peer cannot fill the log or take up the loop's time.
///
/// Suppressed reports are counted by key. After the period, the count is reported by the key's next report, by a
/// temporary thread, or by exit(3), whichever comes first.
package final class LimitedReports<Key: Hashable & Sendable>: Sendable {
    private struct ReportState: Sendable {
        var counts = ReportCounts<Key>()
        var limit: ReportLimit? = .standard
        var hasThread = false
    }

    private let state = LockedValue.ofProcess(ReportState())
    private let send: @Sendable (Key?, Int) -> Void
    private let fork = ForkMark()

    /// - Parameter send: receives a key and its number of suppressed reports; the key is `nil` for all keys beyond the
    ///   kept ones. Called on any thread, without a lock.
    package init(send: @escaping @Sendable (Key?, Int) -> Void) {
        self.send = send
    }

    /// The limit; `nil` lets every report pass.
    package var limit: ReportLimit? {
        get { state.withLock { $0.limit } }
        set { state.withLock { $0.limit = newValue } }
    }

    package func admit(_ key: Key) -> Bool {
        // A thread of the parent may have held the lock during the fork.
        if fork.isForked { return true }
        let now = LoopClock.monotonic.now.nanoseconds
        let (report, needsThread) = state.withLock { state in
            guard let limit = state.limit else {
                return ((passes: true, suppressedBefore: 0, place: Optional(key)), false)
            }
            let report = state.counts.admit(key, limit, now: now)
            let needsThread = !report.passes && !state.hasThread
            if needsThread { state.hasThread = true }
            return (report, needsThread)
        }
        if report.suppressedBefore > 0 { send(report.place, report.suppressedBefore) }
        if needsThread { startThread() }
        return report.passes
    }

    package func reportAllSuppressed() {
        if fork.isForked { return }
        let suppressed = state.withLock { $0.counts.takeSuppressed($0.limit ?? .standard, now: nil) }
        for (key, count) in suppressed { send(key, count) }
    }

    private func startThread() {
        var handle = LibraryThread.noHandle
        // If no thread starts, the key's next report or the exit reports the count.
        if LibraryThread.start("reports", &handle, LibraryThread.create, { self.reportExpired() }) == 0 {
            pthread_detach(handle)
        } else {
            state.withLock { $0.hasThread = false }
        }
    }

    private func reportExpired() {
        while true {
            let now = LoopClock.monotonic.now.nanoseconds
            let (suppressed, next) = state.withLock { state in
                let limit = state.limit ?? .standard
                let suppressed = state.counts.takeSuppressed(limit, now: state.limit == nil ? nil : now)
                let next = state.counts.nextEnd(limit)
                if next == nil && suppressed.isEmpty { state.hasThread = false }
                return (suppressed, next)
            }
            for (key, count) in suppressed { send(key, count) }
            if suppressed.isEmpty && next == nil { return }
            // At most 1 s, because the limit may be shortened meanwhile.
            let pause = min(max((next ?? now) &- now, 0), 1_000_000_000)
            var time = timespec(tv_sec: Int(pause / 1_000_000_000), tv_nsec: Int(pause % 1_000_000_000))
            clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nil)
        }
    }
}
