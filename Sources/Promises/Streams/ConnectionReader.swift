import Reactor

/// The reading side of a connection: the read in progress, and whether more can come.
///
/// ```
///     +------------------------------ end ------------------------------+
///     |                                                                 v
///   [free] -- keep (bytes, a frame) --> [waiting] -- end ----------> [ended]
///    |  ^ <-- take (bytes, a frame) ---   |  ^  |   (bytes, a frame)  |  ^
///    |  |                                 |  |  |                     |  |
///    |  |                  take (a chunk) |  |  | end (a chunk)       |  |
///    |  |                                 |  |  +---------------+     |  |
///    |  |                                 v  | keep (a chunk)   v     |  |
///    |  +------------ finish --------- [handling] -- end --> [handlingLast]
///    |                                    ^                     ^
///    +------------ beginChunks -----------+                     +-- beginChunks; back by finish
/// ```
///
/// `take` is called when input has arrived, when the read is cancelled, and when only the read fails. In any state,
/// `ColdState.input` may hold bytes that no read has consumed; reads that come before the end get them first.
struct ConnectionReader: ~Copyable {
    /// What a promise waits for.
    enum Demand {
        /// Any bytes, at most `limit`.
        case bytes(limit: UInt32)
        /// A frame, which `ColdState.frames` knows.
        case frame
        /// The next chunk of `forEachChunk`.
        case chunk
        /// The end of a filter's handshake.
        case handshake
    }

    enum ReadState {
        case free
        /// `promise` waits for input.
        case waiting(for: Demand)
        /// `forEachChunk` is running and does not wait for input: its body has a chunk, or waits for a promise.
        case handling
        /// `forEachChunk` is running, and the stream has ended after the chunk that its body has.
        case handlingLast
        /// No more input will arrive: the peer has ended, or the connection has failed.
        case ended
    }

    typealias Waiter = (promise: PromiseCore, demand: Demand)

    // The promise is a separate field, not a payload of the state: that saves a retain and a release per read, and
    // makes a change of state a plain store (60 of 1,500 instructions for an echoed chunk). Owned, and not counted when
    // it moves: so it passes to the queue of the loop.
    private var reference: CoreRef?
    private(set) var state = ReadState.free
    /// The promise that waits for input: set only in the state `waiting`.
    var promise: PromiseCore? { reference?.object }
    /// The number of bits in the byte count of the last `ByteRead`, an estimate for the next one.
    var sizeClassOfLastRead: UInt8 = 0
    /// Whether code that does not wait for its answers reads, or has read, the connection. It is then unknown whether
    /// the peer still expects an answer.
    var readsAhead = false

    /// Whether the waiting promise belongs to a frame loop. Not counted, as `promise` would be.
    var isFrameLoop: Bool { reference.map { $0.borrow { type(of: $0) == FrameLoopCore.self } } ?? false }

    /// Whether a promise waits for input.
    @inline(__always)
    var isWaiting: Bool {
        if case .waiting = state { true } else { false }
    }

    /// Whether no other read is in progress.
    @inline(__always)
    var isFree: Bool {
        switch state {
        case .free, .ended: true
        case .waiting, .handling, .handlingLast: false
        }
    }

    /// Whether the stream has ended, so that no more input will arrive.
    @inline(__always)
    var hasEnded: Bool {
        switch state {
        case .ended, .handlingLast: true
        case .free, .waiting, .handling: false
        }
    }

    // MARK: Events

    /// Keeps `promise`, which waits for input, and takes over the caller's reference to it. No other promise may be
    /// waiting, and the stream must not have ended.
    @inline(__always)
    mutating func keep(_ promise: CoreRef, for demand: Demand) {
        assert(reference == nil, "two promises wait for input")
        state = .waiting(for: demand)
        reference = promise
    }

    /// Ends the wait, because input has arrived or because the promise no longer waits. After a wait for a chunk, the
    /// body of `forEachChunk` owns the reader until `finish`.
    /// - Returns: the waiting promise, which the caller must settle.
    @inline(__always)
    mutating func take() -> Waiter? {
        takeReference().map { promise, demand in (promise.takeOver(), demand) }
    }

    /// As `take`, and passes the reader's reference to the caller.
    @inline(__always)
    mutating func takeReference() -> (promise: CoreRef, demand: Demand)? {
        guard case .waiting(let demand) = state, let promise = reference.take() else { return nil }
        if case .chunk = demand { state = .handling } else { state = .free }
        return (promise, demand)
    }

    // (There is none: a connection is not released while a promise waits.)
    deinit { reference?.release() }

    /// Notes the end of the stream.
    /// - Returns: the waiting promise, which the caller must settle.
    @discardableResult
    mutating func end() -> Waiter? {
        let waiter = take()
        switch state {
        case .handling, .handlingLast: state = .handlingLast
        case .free, .ended, .waiting: state = .ended
        }
        return waiter
    }

    /// `forEachChunk` begins. The reader must be free.
    mutating func beginChunks() { state = hasEnded ? .handlingLast : .handling }

    /// `forEachChunk` has ended: other reads are allowed.
    mutating func finish() { state = hasEnded ? .ended : .free }
}
