/// The writing side of a connection: what waits to be sent, and whether the end of the stream follows it.
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
/// A *gathering* writer has bytes of fulfilled writes in `Connection.ColdState.gathered`, which leave with the answers
/// to the requests that are still buffered. Two properties are independent of the state. A writer is *corked* while a
/// job is to send its queue at the end of the turn. It is *congested* from the moment when its queue reaches the high
/// watermark until the queue sinks to the low one.
struct ConnectionWriter {
    enum State {
        /// Nothing waits: a write is sent at once.
        case open
        /// Gathered bytes wait for the answers to buffered requests.
        case gathering
        /// Writes wait for the kernel, or for the end of the turn.
        case queued(WriteQueue)
        case queuedThenEnd(WriteQueue)
        /// The end has been sent, or the connection has failed.
        case ended
    }

    private(set) var state = State.open
    /// The lowest 32 bits of the number of the turn in which bytes were last sent at once. If they recur after four
    /// billion turns, one write waits for the end of its turn.
    var turnOfLastSend = UInt32.max
    private(set) var isCorked = false
    /// Whether a flush job is queued for the end of the turn.
    var hasFlushJob = false
    var isCongested = false

    /// The queue, if writes wait.
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

    /// Whether the stream has not been ended on this side, so that writes are accepted.
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

    /// Whether the writer waits for room in the kernel. A corked writer waits for its flush job instead.
    @inline(__always)
    var wantsRoom: Bool { isQueued && !isCorked }

    // MARK: Events

    /// Notes that writes wait in `queue`.
    mutating func enqueue(_ queue: WriteQueue) {
        if case .open = state { state = .queued(queue) }
    }

    /// Begins to gather. The writer must be open.
    mutating func gather() { state = .gathering }

    /// Ends gathering, because the caller sends the gathered bytes.
    mutating func endGathering() {
        if isGathering { state = .open }
    }

    /// Leaves the queue to the flush job at the end of the turn.
    mutating func cork() { isCorked = true }

    /// Ends the wait for the flush job, which runs.
    /// - Returns: whether the writer was corked.
    mutating func uncork() -> Bool {
        defer { isCorked = false }
        return isCorked
    }

    enum EndAction { case sendEnd, waitForQueue, nothing }

    /// Ends this side after all queued writes. The writer must not be gathering.
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

    /// Notes that the queue is empty.
    /// - Returns: whether the caller must send the end now.
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

    /// Notes that no write can succeed any more.
    /// - Returns: the queue, whose promises the caller must reject.
    mutating func fail() -> WriteQueue? {
        let waiting = queue
        state = .ended
        return waiting
    }
}
