/// The trouble that a loop has with registrations: those put off, and descriptors whose readiness leads to nothing.
///
/// Invariant: used on the loop's thread only. There is at most one timer, `retryTimer`, while there are registrations to retry.
struct RegistrationRetries {
    /// The timer that ends the pause.
    var retryTimer: UInt64?
    /// When the kernel last had no room for a registration.
    var lastShortage: LoopInstant?
    var futile: [CInt: FutileReadiness] = [:]
    /// Whether a watch of a closed descriptor has been reported: once a loop.
    var hasReportedStray = false
    /// The turn before which the epoll descriptor is not made anew.
    var turnOfNextRebuild = 0
}

/// Counts how often a descriptor was ready in vain.
struct FutileReadiness {
    /// The number of times in a row after which the watch is paused. A few times are normal: another process may share
    /// the socket.
    static var limit: Int { 256 }

    let progress: Int
    /// The moment of the first time, or the beginning of the last pause.
    var since: LoopInstant
    var count = 0
}
