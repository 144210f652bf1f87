/// The writing side of a connection: whether something waits to be sent, and whether the end comes after it.
///
/// ```
///  [gathering] <--+
///     |  sent     | gather
///     v           |
///   [open] <------+
///     ^    enqueue               end
///     +--------------> [queued] -----> [queued, then the end]
///     |    drained        |                     |
///     | end               | fail                | drained, then the end is sent
///     | fail              v                     | fail
///     +-------------> [ended] <-----------------+
/// ```
///
/// A *gathering* writer has bytes in `Connection.ColdState.gathered`, promised as written, while more requests are here to be
/// answered. Beside the state: *corked* is a writer whose queue a job sends at the end of the turn; *congested* is
/// one whose queue has reached the high watermark, and has not sunk to the low one since.
struct ConnectionWriter {
    enum State {
        /// Nothing waits. A write is sent at once.
        case open
        /// Written bytes wait for the answers to requests that are here.
        case gathering
        /// Writes wait for the kernel, or for the end of the turn.
        case queued(WriteQueue)
        case queuedThenEnd(WriteQueue)
        /// The end has been sent, or the connection has failed.
        case ended
    }

    private(set) var state = State.open
    /// The turn of the loop in which bytes were last sent at once, in 32 bits: a number that comes again after four billion
    /// turns makes one write wait for the end of its turn.
    var turnOfLastSend = UInt32.max
    private(set) var isCorked = false
    /// Whether a job for the end of the turn is queued.
    var hasJob = false
    var isCongested = false

    /// What waits.
    @inline(__always)
    var queue: WriteQueue? {
        switch state {
        case .queued(let queue), .queuedThenEnd(let queue): queue
        case .open, .gathering, .ended: nil
        }
    }

    @inline(__always)
    var isQueued: Bool {
        switch state {
        case .queued, .queuedThenEnd: true
        case .open, .gathering, .ended: false
        }
    }

    /// Whether the end neither has been sent nor is to be sent.
    @inline(__always)
    var takesWrites: Bool {
        switch state {
        case .open, .gathering, .queued: true
        case .queuedThenEnd, .ended: false
        }
    }

    @inline(__always)
    var isGathering: Bool {
        if case .gathering = state { true } else { false }
    }

    /// Whether room in the kernel is waited for. While corked the job is, which sends then.
    @inline(__always)
    var wantsRoom: Bool { isQueued && !isCorked }

    // MARK: Events

    /// A write waits in `queue`.
    mutating func enqueue(_ queue: WriteQueue) {
        if case .open = state { state = .queued(queue) }
    }

    /// Bytes are gathered. The writer must be open.
    mutating func gather() { state = .gathering }

    /// What was gathered is about to be sent.
    mutating func endGathering() {
        if isGathering { state = .open }
    }

    /// The queue is to be sent at the end of the turn.
    mutating func cork() { isCorked = true }

    /// The queue is about to be sent.
    /// - Returns: whether it was to be sent at the end of the turn.
    mutating func uncork() -> Bool {
        defer { isCorked = false }
        return isCorked
    }

    enum EndAction { case sendEnd, waitForQueue, nothing }

    /// The end is to be sent after everything that is queued. Nothing must be gathered.
    mutating func end() -> EndAction {
        switch state {
        case .open, .gathering:
            assert(!isGathering, "the end would come before what is gathered")
            state = .ended
            return .sendEnd
        case .queued(let queue):
            state = .queuedThenEnd(queue)
            return .waitForQueue
        case .queuedThenEnd, .ended: return .nothing
        }
    }

    /// All that was queued is sent, or withdrawn.
    /// - Returns: whether the end is to be sent now.
    mutating func drained() -> Bool {
        switch state {
        case .queued:
            state = .open
            return false
        case .queuedThenEnd:
            state = .ended
            return true
        case .open, .gathering, .ended: return false
        }
    }

    /// No write can succeed any more.
    /// - Returns: what waited, which is the caller's to reject.
    mutating func fail() -> WriteQueue? {
        let waiting = queue
        state = .ended
        return waiting
    }
}
