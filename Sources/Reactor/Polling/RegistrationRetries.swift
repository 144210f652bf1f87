/// A loop's failed registrations: those that are deferred, and descriptors that report readiness without being ready.
///
/// Invariant: used on the loop's thread only. There is at most one timer, `retryTimer`, while there are registrations
/// to retry.
struct RegistrationRetries {
    /// The timer that ends the pause.
    var retryTimer: UInt64?
    /// The last moment at which the kernel had no room for a registration.
    var lastShortage: LoopInstant?
    var futile: [CInt: FutileReadiness] = [:]
    /// Whether a watch of a closed descriptor has been reported, which is done once for each loop.
    var hasReportedStray = false
    /// The turn before which the epoll descriptor is not replaced again.
    var turnOfNextRebuild = 0
}

/// Counts how often a descriptor was reported ready, but was not.
struct FutileReadiness {
    /// The number of times in a row after which the watch is paused. A few times are normal: another process may share
    /// the socket.
    static var limit: Int { 256 }

    let progress: Int
    /// The moment of the first time, or the beginning of the last pause.
    var since: LoopInstant
    var count = 0
}
