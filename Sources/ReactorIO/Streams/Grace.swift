/// The rule for all time limits on a peer: a delay of the event loop does not count against the peer. A clock that
/// reaches its limit late checks again after the same delay, so that timely data in the kernel, and ready handlers,
/// come first; once per wait, so that further bytes do not prolong it.
struct Grace {
    private var isUsed = false

    /// Called when a limit has been reached.
    /// - Parameters:
    ///   - late: the time since the limit.
    ///   - limit: the limit, which is the maximum grace.
    ///   - isReady: true when something may have to be handled first.
    /// - Returns: the time until the clock checks again; `nil` if the limit applies.
    mutating func time(
        lateBy late: Duration, atMost limit: Duration, if isReady: @autoclosure () -> Bool = true
    ) -> Duration? {
        if isUsed || late <= .zero && !isReady() { return nil }
        isUsed = true
        return min(late, limit)
    }
}
