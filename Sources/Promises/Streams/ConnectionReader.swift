/// The reading side of a connection: the read that is under way, and whether more can come.
///
/// ```
///     +------------------------------ end ------------------------------+
///     |                                                                 v
///   [idle] -- wait (bytes, a frame) --> [waiting] -- end ----------> [ended]
///    |  ^ <-- take (bytes, a frame) ---   |  ^  |   (bytes, a frame)  |  ^
///    |  |                                 |  |  |                     |  |
///    |  |                  take (a chunk) |  |  | end (a chunk)       |  |
///    |  |                                 |  |  +---------------+     |  |
///    |  |                                 v  | wait (a chunk)   v     |  |
///    |  +------------ finish --------- [handling] -- end --> [handlingLast]
///    |                                    ^                     ^
///    +------------ beginChunks -----------+                     +-- beginChunks; back by finish
/// ```
///
/// `take` stands for input that has come, for a cancellation and for a failure of the read alone. Bytes that were read beyond
/// a frame are in `Connection.ColdState.input`, in any state; an ended reader hands them out before it reports the end.
struct ConnectionReader {
    /// What a promise waits for.
    enum Demand {
        /// Whatever comes, at most so many bytes.
        case bytes(limit: UInt32)
        /// A frame. Its decoder is in `ColdState`.
        case frame
        /// The next chunk of `forEachChunk`.
        case chunk
    }

    enum State {
        case idle
        /// Input is wanted, and has not come. `promise` waits for it.
        case waiting(for: Demand)
        /// `forEachChunk` is running, and wants nothing just now: its body has a chunk, or waits for a promise.
        case handling
        /// The same as `handling` after the last chunk.
        case handlingLast
        /// Nothing more will come: the peer has ended, or the connection has failed.
        case ended
    }

    typealias Waiter = (promise: PromiseCore, demand: Demand)

    // The promise stands beside the state and not in it: then a read retains and releases it once less, and a change of
    // state is a store (20 of 1,500 instructions of an echoed chunk).
    private(set) var state = State.idle
    /// The promise that waits; there is one in the state `waiting` only.
    private(set) var promise: PromiseCore?
    /// How many bits it takes to count the bytes that the last read has brought; what is expected of the next.
    var sizeClassOfLastRead: UInt8 = 0
    /// The connection is, or was, read by code that does not wait for its answers: what the peer is owed is not known here.
    var readsAhead = false

    /// Whether input is wanted.
    @inline(__always)
    var isWaiting: Bool {
        if case .waiting = state { true } else { false }
    }

    /// Whether no other read is under way.
    @inline(__always)
    var isFree: Bool {
        switch state {
        case .idle, .ended: true
        case .waiting, .handling, .handlingLast: false
        }
    }

    /// Whether nothing more will come.
    @inline(__always)
    var hasEnded: Bool {
        switch state {
        case .ended, .handlingLast: true
        case .idle, .waiting, .handling: false
        }
    }

    // MARK: Events

    /// Lets `promise` wait for input. No other may wait, and the stream must not have ended.
    @inline(__always)
    mutating func wait(_ promise: PromiseCore, for demand: Demand) {
        state = .waiting(for: demand)
        self.promise = promise
    }

    /// Input has come for the promise that waits, or it waits no more. A chunk goes to a body, which has the reader until
    /// `finish`.
    /// - Returns: the promise that waited, which is the caller's to settle.
    @inline(__always)
    mutating func take() -> Waiter? {
        guard case .waiting(let demand) = state, let promise = promise.take() else { return nil }
        if case .chunk = demand { state = .handling } else { state = .idle }
        return (promise, demand)
    }

    /// Nothing more will come.
    /// - Returns: the promise that waited, which is the caller's to settle.
    @discardableResult
    mutating func end() -> Waiter? {
        let waiter = take()
        switch state {
        case .handling, .handlingLast: state = .handlingLast
        case .idle, .ended, .waiting: state = .ended
        }
        return waiter
    }

    /// `forEachChunk` begins. The reader must be free.
    mutating func beginChunks() { state = hasEnded ? .handlingLast : .handling }

    /// `forEachChunk` is over: others may read.
    mutating func finish() { state = hasEnded ? .ended : .idle }
}
