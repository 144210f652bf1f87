import ReactorLibc

/// A handler of reports. A struct, because reading a bare closure from generic storage wraps it once more each time, and
/// each call then goes through all wrappers.
package struct ReportHandler<Report>: Sendable {
    package let call: @Sendable (Report) -> Void

    package init(_ call: @escaping @Sendable (Report) -> Void) { self.call = call }
}

/// The number of reports with the same key that pass within a period.
package struct ReportLimit: Hashable, Sendable {
    package var burst: Int
    /// The length of the period in nanoseconds.
    package var period: Int64

    package init(burst: Int, period: Int64) {
        self.burst = max(burst, 1)
        self.period = max(period, 1)
    }

    package static var standard: ReportLimit { ReportLimit(burst: 10, period: 1_000_000_000) }
}

/// Counts reports by key, and decides which of them exceed the limit. It uses the monotonic clock, since reports come
/// from any thread.
package struct ReportCounts<Key: Hashable & Sendable>: Sendable {
    private struct Count {
        var began: Int64
        var passed = 0
        var suppressed = 0
    }

    /// `nil` stands for all keys beyond `mostKeys`.
    private var counts: [Key?: Count] = [:]
    /// A program has few source lines. If keys are created at run time, the excess ones share a count.
    private static var mostKeys: Int { 1024 }
    /// While the table is full, the earliest moment at which counts may expire: searching all counts for every report
    /// of a new key would cost more than the report itself.
    private var fullUntil = Int64.min

    package init() {}

    /// The end of the first period in which a report was suppressed.
    package func nextEnd(_ limit: ReportLimit) -> Int64? {
        counts.values.lazy.filter { $0.suppressed > 0 }.map { $0.began &+ limit.period }.min()
    }

    /// Counts a report at the moment `now`.
    /// - Returns: whether the report passes, and how many reports of an earlier, ended period were suppressed, of the
    ///   key in `place`.
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

    /// Removes the counts whose period has ended and that have no suppressed reports. Returns whether there is room
    /// then.
    private mutating func makeRoom(_ limit: ReportLimit, now: Int64) -> Bool {
        guard now >= fullUntil else { return false }
        counts = counts.filter { $0.value.suppressed > 0 || now &- $0.value.began < limit.period }
        if counts.count < Self.mostKeys { return true }
        let ends = counts.values.lazy.filter { $0.suppressed == 0 }.map { $0.began &+ limit.period }
        fullUntil = ends.min() ?? now &+ limit.period
        return false
    }

    /// Returns the number of suppressed reports for each key, and removes them from the counts. Only periods that have
    /// ended at `now` are included; with `nil`, all periods.
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

/// Limits the number of reports, so that their cause, such as a peer, decides neither how long the log gets nor how
/// long the loop writes to it.
///
/// Suppressed reports are counted by key. The count is reported when the period has ended: with the next report of that
/// key, by a thread that runs until all counts have been reported, or at exit(3).
package final class LimitedReports<Key: Hashable & Sendable>: Sendable {
    private struct ReportState: Sendable {
        var counts = ReportCounts<Key>()
        var limit: ReportLimit? = .standard
        /// Whether this process has a thread that reports the counts.
        var hasThread = false
    }

    private let state = LockedValue.ofProcess(ReportState())
    private let send: @Sendable (Key?, Int) -> Void
    private let fork = ForkMark()

    /// Creates a limiter without counts.
    /// - Parameter send: called with a key, or `nil` for the keys beyond those that are kept, and the number of its
    ///   suppressed reports. Called on any thread, without a lock.
    package init(send: @escaping @Sendable (Key?, Int) -> Void) {
        self.send = send
    }

    /// The limit; `nil` means that every report passes.
    package var limit: ReportLimit? {
        get { state.withLock { $0.limit } }
        set { state.withLock { $0.limit = newValue } }
    }

    /// Counts a report, and returns whether it passes.
    package func admit(_ key: Key) -> Bool {
        // Another thread of the parent may have held the lock when the process was forked.
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

    /// Reports the counts of all suppressed reports.
    package func reportAllSuppressed() {
        if fork.isForked { return }
        let suppressed = state.withLock { $0.counts.takeSuppressed($0.limit ?? .standard, now: nil) }
        for (key, count) in suppressed { send(key, count) }
    }

    private func startThread() {
        var handle = LibraryThread.noHandle
        // If there is no thread, the count is reported with the next report of the key, or at exit.
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
            // If the limit is shortened meanwhile, the thread notices that after a second at most.
            let pause = min(max((next ?? now) &- now, 0), 1_000_000_000)
            var time = timespec(tv_sec: Int(pause / 1_000_000_000), tv_nsec: Int(pause % 1_000_000_000))
            clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nil)
        }
    }
}
