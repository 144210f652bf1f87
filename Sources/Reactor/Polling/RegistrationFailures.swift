/// Failures of a loop's epoll registrations: no room in the kernel, readiness without cause, and closed descriptors.
/// Decides what to report and when to retry.
///
/// Invariant: used on the loop's thread only. There is at most one timer, `retryTimer`, while there are registrations
/// to retry.
struct RegistrationFailures {
    /// The timer that ends the pause.
    var retryTimer: UInt64?
    /// The last moment at which the kernel had no room for a registration.
    private var lastShortage: LoopInstant?
    private var spurious: [CInt: SpuriousReadiness] = [:]
    /// Whether a watch of a closed descriptor has been reported.
    private var hasReportedStale = false
    /// The turn before which the epoll descriptor is not replaced again.
    private var turnOfNextRebuild = 0

    var isEmpty: Bool { retryTimer == nil && spurious.isEmpty }

    /// Counts how often a descriptor was falsely reported ready.
    private struct SpuriousReadiness {
        let progress: Int
        /// The moment of the first time, or the beginning of the last pause.
        var since: LoopInstant
        var count = 0
    }

    /// The number of times in a row after which a watch is paused. A few times are normal: another process may share
    /// the socket.
    private static var limit: Int { 256 }

    /// - Returns: whether to report the shortage: once per episode, which ends after a second without one.
    mutating func noteShortage(at now: LoopInstant) -> Bool {
        defer { lastShortage = now }
        return lastShortage.map { $0.duration(to: now) > .seconds(1) } ?? true
    }

    /// Counts a report of readiness that no call could use.
    /// - Returns: whether to pause the watch of `fd`, and whether to report that, once per episode.
    mutating func noteSpuriousReadiness(
        of fd: CInt, progress: Int, at now: LoopInstant
    ) -> (isPaused: Bool, isReported: Bool) {
        var entry = spurious[fd] ?? SpuriousReadiness(progress: progress, since: now)
        if entry.progress != progress || entry.since.duration(to: now) > .seconds(1) {
            entry = SpuriousReadiness(progress: progress, since: now)
        }
        entry.count += 1
        let isPaused = entry.count >= Self.limit
        if isPaused { entry.since = now }
        spurious[fd] = entry
        return (isPaused, entry.count == Self.limit)
    }

    mutating func forget(_ fd: CInt) { spurious[fd] = nil }

    /// - Returns: whether to report a registration whose descriptor was closed. Only the first per loop is: a program
    ///   that makes this mistake once may make it often.
    mutating func noteStale() -> Bool {
        defer { hasReportedStale = true }
        return !hasReportedStale
    }

    func mayRebuild(in turn: Int) -> Bool { turn >= turnOfNextRebuild }

    /// There was no room for another epoll descriptor: the loop tries again after some turns.
    mutating func rebuildHasFailed(in turn: Int) { turnOfNextRebuild = turn + 1024 }
}
