/// Decides when to report and retry failed epoll registrations: no room in the kernel, spurious readiness, and closed
/// descriptors.
///
/// Invariant: used on the loop's thread only. While there are registrations to retry, `retryTimer` is the only timer
/// for them.
struct RegistrationFailures {
    var retryTimer: UInt64?
    private var lastShortage: LoopInstant?
    private var spurious: [CInt: SpuriousReadiness] = [:]
    private var hasReportedStale = false
    /// The earliest turn to replace the epoll descriptor again.
    private var turnOfNextRebuild = 0

    var isEmpty: Bool { retryTimer == nil && spurious.isEmpty }

    private struct SpuriousReadiness {
        let progress: Int
        /// The first spurious event, or the beginning of the last pause.
        var since: LoopInstant
        var count = 0
    }

    /// Consecutive spurious events before a pause. A few are normal, since another process may share the socket.
    private static var limit: Int { 256 }

    /// - Returns: true to report the shortage, once per episode. An episode ends after one second without a shortage.
    mutating func noteShortage(at now: LoopInstant) -> Bool {
        defer { lastShortage = now }
        return lastShortage.map { $0.duration(to: now) > .seconds(1) } ?? true
    }

    /// - Returns: whether to pause the watch on `fd`, and whether to report the pause, once per episode.
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

    /// - Returns: true to report a closed descriptor's registration, once per loop, since a program with this mistake
    ///   may repeat it.
    mutating func noteStale() -> Bool {
        defer { hasReportedStale = true }
        return !hasReportedStale
    }

    func mayRebuild(in turn: Int) -> Bool { turn >= turnOfNextRebuild }

    /// The kernel has no room for another epoll descriptor: delays the next attempt by some turns.
    mutating func rebuildHasFailed(in turn: Int) { turnOfNextRebuild = turn + 1024 }
}
