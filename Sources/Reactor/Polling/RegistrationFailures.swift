/// Failures of epoll registrations: no room in the kernel, spurious readiness, and closed descriptors. Decides what to
/// report and when to retry.
///
/// Invariant: used on the loop's thread only. `retryTimer` is the only timer, while there are registrations to retry.
struct RegistrationFailures {
    var retryTimer: UInt64?
    private var lastShortage: LoopInstant?
    private var spurious: [CInt: SpuriousReadiness] = [:]
    private var hasReportedStale = false
    /// The earliest turn in which the epoll descriptor may be replaced again.
    private var turnOfNextRebuild = 0

    var isEmpty: Bool { retryTimer == nil && spurious.isEmpty }

    private struct SpuriousReadiness {
        let progress: Int
        /// The first time, or the beginning of the last pause.
        var since: LoopInstant
        var count = 0
    }

    /// The consecutive times before a pause. A few are normal, since another process may share the socket.
    private static var limit: Int { 256 }

    /// - Returns: true to report the shortage, once per episode. A second without a shortage ends the episode.
    mutating func noteShortage(at now: LoopInstant) -> Bool {
        defer { lastShortage = now }
        return lastShortage.map { $0.duration(to: now) > .seconds(1) } ?? true
    }

    /// - Returns: whether to pause the watch of `fd`, and to report it, once per episode.
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

    /// No room for another epoll descriptor: the loop retries after some turns.
    mutating func rebuildHasFailed(in turn: Int) { turnOfNextRebuild = turn + 1024 }
}
