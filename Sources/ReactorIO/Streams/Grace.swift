/// The rule of all time limits of a peer: a delay of the loop is not the peer's. When a limit has been reached, its clock
/// looks again after as much time as was lost, so that what the kernel has in time, and handlers that have become ready,
/// come first. Only then the limit applies. Once for each wait, so that further bytes do not prolong it.
///
/// `ConnectionClose` needs none: its clock reads and sends by itself before it looks.
struct Grace {
    private var isUsed = false

    /// Called when a limit has been reached.
    /// - Parameters:
    ///   - late: how long ago.
    ///   - limit: the limit; no more is given.
    ///   - isReady: true when something may have to be handled first, although the clock is in time.
    /// - Returns: the time after which the clock looks again; `nil` if the limit applies.
    mutating func time(
        lateBy late: Duration, atMost limit: Duration, if isReady: @autoclosure () -> Bool = true
    ) -> Duration? {
        if isUsed || late <= .zero && !isReady() { return nil }
        isUsed = true
        return min(late, limit)
    }
}
