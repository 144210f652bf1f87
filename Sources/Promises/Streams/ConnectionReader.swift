import Reactor

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
/// `take` is called when input has arrived, when the read is cancelled, and when the read alone fails. In any state,
/// `ColdState.input` may hold bytes that arrived behind a frame; an ended reader returns them before it
/// reports the end.
struct ConnectionReader: ~Copyable {
    /// What a promise waits for.
    enum Demand {
        /// Any bytes, at most `limit`.
        case bytes(limit: UInt32)
        /// A frame, which `ColdState.frames` knows.
        case frame
        /// The next chunk of `forEachChunk`.
        case chunk
    }

    enum ReadState {
        case idle
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

    // The promise is a field of its own and not a payload of the state: that saves a retain and a release for each
    // read, and makes a change of state a plain store (60 of 1,500 instructions for an echoed chunk).
    private(set) var state = ReadState.idle
    // Owned. Not counted when it moves, so that it passes to the queue of the loop without being counted.
    private var reference: CoreRef?
    /// The promise that waits for input: present in the state `waiting` only.
    var promise: PromiseCore? { reference?.object }
    /// The number of bits in the byte count of the last read, from which the size of the next one is estimated.
    private var sizeClassOfLastRead: UInt8 = 0
    /// Whether code that does not wait for its answers reads, or has read, the connection. It is then unknown whether
    /// the peer still expects an answer.
    var readsAhead = false

    /// Reads the descriptor once.
    @inline(__always)
    mutating func receive(from descriptor: ConnectionDescriptor, atMost limit: Int) -> (count: Int, bytes: [UInt8]) {
        if sizeClassOfLastRead > Self.largestCopiedSizeClass { return receiveIntoArray(from: descriptor, limit) }
        let buffer = descriptor.loop.scratch
        let count = descriptor.receive(into: buffer, atMost: limit)
        if count <= 0 { return (count, []) }
        noteSize(count)
        return (count, [UInt8](UnsafeRawBufferPointer(rebasing: buffer[..<count])))
    }

    /// The size class of 4 KiB. For larger reads a copy costs more than an array of which a part may remain unused:
    /// with a copy, an echo of 16 KiB takes 1.17 of the CPU time of the same echo in C, and 1.11 without.
    private static var largestCopiedSizeClass: UInt8 { 12 }

    /// Reads into an array whose size is the power of two above the last read. Bytes that do not fit are read in the
    /// next turn, with more room.
    @inline(never)
    private mutating func receiveIntoArray(
        from descriptor: ConnectionDescriptor, _ limit: Int
    ) -> (count: Int, bytes: [UInt8]) {
        let room = min(limit, 1 << sizeClassOfLastRead)
        var count = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: room) { buffer, filled in
            count = descriptor.receive(into: UnsafeMutableRawBufferPointer(buffer), atMost: room)
            filled = max(count, 0)
        }
        if count > 0 { noteSize(count) }
        return (count, bytes)
    }

    @inline(__always)
    private mutating func noteSize(_ count: Int) {
        sizeClassOfLastRead = UInt8(truncatingIfNeeded: Int.bitWidth - count.leadingZeroBitCount)
    }

    /// Whether a promise waits for input.
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

    /// Whether the stream has ended, so that no more input will arrive.
    @inline(__always)
    var hasEnded: Bool {
        switch state {
        case .ended, .handlingLast: true
        case .idle, .waiting, .handling: false
        }
    }

    // MARK: Events

    /// Makes `promise` wait for input. No other promise may be waiting, and the stream must not have ended.
    @inline(__always)
    mutating func wait(_ promise: PromiseCore, for demand: Demand) { wait(owned: .retaining(promise), for: demand) }

    /// As `wait`, and takes over the caller's reference.
    @inline(__always)
    mutating func wait(owned promise: CoreRef, for demand: Demand) {
        assert(reference == nil, "two promises wait for input")
        state = .waiting(for: demand)
        reference = promise
    }

    /// Ends the wait, because input has arrived or because the promise no longer waits. After a wait for a chunk, the
    /// body of `forEachChunk` owns the reader until `finish`.
    /// - Returns: the promise that waited, which the caller must settle.
    @inline(__always)
    mutating func take() -> Waiter? {
        takeReference().map { promise, demand in (promise.takeOver(), demand) }
    }

    /// As `take`, and passes the reader's reference to the caller.
    @inline(__always)
    mutating func takeReference() -> (promise: CoreRef, demand: Demand)? {
        guard case .waiting(let demand) = state, let promise = reference.take() else { return nil }
        promise.borrow { $0.endProduction() }
        if case .chunk = demand { state = .handling } else { state = .idle }
        return (promise, demand)
    }

    deinit {
        // There is none, since a connection is not released while it waits; but no core must refer to a connection that
        // has ended.
        reference?.borrow { $0.endProduction() }
        reference?.release()
    }

    /// Notes the end of the stream.
    /// - Returns: the promise that waited, which the caller must settle.
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

    /// `forEachChunk` has ended: other reads are allowed.
    mutating func finish() { state = hasEnded ? .ended : .idle }
}
