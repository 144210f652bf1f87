/// The writing side of a connection: whether something waits to be sent, and whether the end comes after it.
///
/// ```
///            enqueue               end
///   [open] <----------> [queued] -------> [queued, then the end]
///     |      drained       |                        |
///     | end                | fail                   | drained, then the end is sent
///     | fail               v                        | fail
///     +---------------> [ended] <-------------------+
/// ```
///
/// Beside the state: *corked* is a writer whose queue a job sends, after the jobs that are ready; *congested* is one whose
/// queue has reached the high watermark, and has not sunk to the low one since.
struct ConnectionWriter {
    enum State {
        /// Nothing waits. A write is sent at once.
        case open
        /// Writes wait for the kernel, or for the jobs that are ready.
        case queued(WriteQueue, thenEnd: Bool)
        /// The end has been sent, or the connection has failed.
        case ended
    }

    /// The turn of the loop in which bytes were last sent at once.
    var turnOfLastSend = -1
    private(set) var state = State.open
    private(set) var isCorked = false
    var isCongested = false

    /// What waits.
    @inline(__always)
    var queue: WriteQueue? {
        if case .queued(let queue, _) = state { queue } else { nil }
    }

    @inline(__always)
    var isQueued: Bool {
        if case .queued = state { true } else { false }
    }

    /// Whether the end neither has been sent nor is to be sent.
    @inline(__always)
    var takesWrites: Bool {
        switch state {
        case .open: true
        case .queued(_, let thenEnd): !thenEnd
        case .ended: false
        }
    }

    /// Whether room in the kernel is waited for. While corked the job is, which sends then.
    @inline(__always)
    var wantsRoom: Bool { isQueued && !isCorked }

    // MARK: Events

    /// A write waits in `queue`.
    mutating func enqueue(_ queue: WriteQueue) {
        if case .open = state { state = .queued(queue, thenEnd: false) }
    }

    /// The queue is to be sent by a job.
    /// - Returns: whether that job is yet to be made.
    mutating func cork() -> Bool {
        if isCorked { return false }
        isCorked = true
        return true
    }

    /// The job runs.
    mutating func uncork() { isCorked = false }

    enum EndAction { case sendEnd, waitForQueue, nothing }

    /// The end is to be sent after everything that is queued.
    mutating func end() -> EndAction {
        switch state {
        case .open:
            state = .ended
            return .sendEnd
        case .queued(let queue, false):
            state = .queued(queue, thenEnd: true)
            return .waitForQueue
        case .queued(_, true), .ended: return .nothing
        }
    }

    /// All that was queued is sent, or withdrawn.
    /// - Returns: whether the end is to be sent now.
    mutating func drained() -> Bool {
        guard case .queued(_, let thenEnd) = state else { return false }
        state = thenEnd ? .ended : .open
        return thenEnd
    }

    /// No write can succeed any more.
    /// - Returns: what waited, which is the caller's to reject.
    mutating func fail() -> WriteQueue? {
        let waiting = queue
        state = .ended
        return waiting
    }
}
