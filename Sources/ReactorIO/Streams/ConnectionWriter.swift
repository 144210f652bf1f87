/// The writing side of a connection: the bytes to send, and whether the end of the stream follows.
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
/// A *gathering* writer has bytes of fulfilled writes, which leave with the answers to the buffered requests. A writer
/// in any state is *corked* while a job is due to send its queue at the end of the turn. It is *congested* from the
/// high watermark of its queue until the queue drains to the low one.
struct ConnectionWriter: ~Copyable {
    enum WriteState {
        /// Nothing waits: a write is sent at once.
        case open
        /// These bytes wait for the answers to buffered requests.
        case gathering([UInt8])
        /// Writes wait for the kernel, or for the end of the turn.
        case queued(WriteQueue)
        case queuedThenEnd(WriteQueue)
        case ended
    }

    private(set) var state = WriteState.open
    /// The lowest 32 bits of the number of the turn in which bytes were last sent at once. If they recur after four
    /// billion turns, one write waits for the end of its turn.
    var turnOfLastSend = UInt32.max
    private(set) var isCorked = false
    var hasFlushJob = false
    var isCongested = false

    @inline(__always)
    var queue: WriteQueue? {
        switch state {
        case .queued(let queue), .queuedThenEnd(let queue): queue
        case .open, .gathering, .ended: nil
        }
    }

    var hasQueuedPromises: Bool { queue?.promises.isEmpty == false }

    @inline(__always)
    var isQueued: Bool {
        switch state {
        case .queued, .queuedThenEnd: true
        case .open, .gathering, .ended: false
        }
    }

    @inline(__always)
    var takesWrites: Bool {
        switch state {
        case .open, .gathering, .queued: true
        case .queuedThenEnd, .ended: false
        }
    }

    /// True when nothing waits, and writes are accepted.
    var isUnused: Bool {
        if case .open = state { true } else { false }
    }

    @inline(__always)
    var isGathering: Bool {
        if case .gathering = state { true } else { false }
    }

    /// False while corked: the flush job then sends the queue.
    @inline(__always)
    var wantsRoom: Bool { isQueued && !isCorked }

    // MARK: Events

    @inline(__always)
    mutating func enqueue(_ append: (WriteQueue) -> Void) {
        assert(!isGathering && takesWrites)
        let queue = queue ?? WriteQueue()
        append(queue)
        if case .open = state { state = .queued(queue) }
    }

    /// The maximum size of a gathered block, sent in one call. A larger one would only take memory while the peer does
    /// not read.
    private static var gatherLimit: Int { 65_536 }
    /// Larger writes are sent without a copy, after the gathered bytes. Copying 16 KiB takes half as long as a call.
    static var largestGathered: Int { 16_384 }

    func canGather(_ count: Int) -> Bool {
        count <= Self.largestGathered && gatheredCount + count <= Self.gatherLimit
    }

    private var gatheredCount: Int {
        if case .gathering(let block) = state { block.count } else { 0 }
    }

    /// - Returns: true if the bytes are the first.
    // Not inlined: after the caller's earlier queries of the block, the optimizer would keep a second reference to it,
    // and each append would copy it.
    @inline(never)
    mutating func gather(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let isFirst = !isGathering
        var block = takeGathered()
        // Answers to pipelined requests take a few hundred bytes, which would grow the array several times.
        if isFirst { block.reserveCapacity(1024) }
        block.append(contentsOf: bytes)
        state = .gathering(block)
        return isFirst
    }

    mutating func takeGathered() -> [UInt8] {
        guard case .gathering(let block) = state else { return [] }
        state = .open
        return block
    }

    // MARK: The queue

    var queuedBytes: Int { isGathering ? gatheredCount : queue?.count ?? 0 }
    /// The memory of the queued bytes and their writes, including unused memory.
    var memory: Int {
        if case .gathering(let block) = state { block.capacity } else { queue?.memory ?? 0 }
    }

    /// If a write of at most this size follows another in the same turn, it waits for the end of the turn, and is sent
    /// together with later ones. So a thousand writes of one handler, or the writes of a hundred connections to one,
    /// take two system calls.
    private static var corkedSize: Int { 4096 }

    /// Corks the writer if others may join this write, before which nothing is queued.
    /// - Returns: true if the write is left to the flush job.
    @inline(__always)
    mutating func corks(_ count: Int, in turn: UInt32) -> Bool {
        guard turn == turnOfLastSend && count <= Self.corkedSize else { return false }
        isCorked = true
        return true
    }

    mutating func cork() { isCorked = true }

    /// - Returns: true if the writer was corked.
    mutating func uncork() -> Bool {
        defer { isCorked = false }
        return isCorked
    }

    /// Ends this side after all queued writes. The writer must not be gathering.
    /// - Returns: true if the caller must send the end now.
    mutating func end() -> Bool {
        switch state {
        case .open, .gathering:
            assert(!isGathering, "the end would come before what is gathered")
            state = .ended
            return true
        case .queued(let queue): state = .queuedThenEnd(queue)
        case .queuedThenEnd, .ended: break
        }
        return false
    }

    /// - Returns: true if the caller must send the end now.
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
