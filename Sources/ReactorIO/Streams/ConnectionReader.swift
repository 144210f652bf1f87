import Promises
import Reactor

/// The event that a promise waits for. Some questions compare the numbers, which follow this order.
@usableFromInline
enum InputForm: UInt8 {
    /// Any bytes, for `read`.
    case bytes
    /// Any bytes, for `receive`.
    case array
    /// The next chunk of `forEachChunk`, which has the reader until it ends.
    case chunk
    /// The end of a filter's handshake.
    case handshake
    /// A frame, or a number of bytes.
    case frame
    /// The next frame of a loop, or of a sequence. A drain ends the wait.
    case frames

    /// True when it takes what arrives, up to a number of bytes.
    @inline(__always)
    var isOfBytes: Bool { rawValue <= InputForm.array.rawValue }
    /// True when it has a decoder, and the limits of `frameTimeouts`.
    @inline(__always)
    var isOfFrames: Bool { rawValue >= InputForm.frame.rawValue }
    /// True when input that arrives outside of an event continues it in a job.
    var continuesInJob: Bool { self == .chunk || self == .frames }
}

/// The reading side of a connection: the promise that waits for input, and whether more can come.
///
/// A promise waits from `keep` until `take`. A `forEachChunk` has the reader as long as its `ChunkLoop` exists, even
/// while its body runs. In any state, `ColdState.input` may hold bytes that no read has consumed. Reads before the end
/// get them first.
struct ConnectionReader: ~Copyable {
    // In the 16 bytes that the connection has for it.
    /// The waiting promise. Owned, and not counted when it moves to the queue of the loop.
    private var reference: CoreRef?
    /// For `bytes` and `array`, the maximum to receive. For other forms, the number of buffered bytes to wait for.
    private(set) var count: UInt32 = 0
    /// The form of the wait; `chunk` during all of a `forEachChunk`.
    var form = InputForm.bytes
    private var marks = Marks()
    /// More than one if the body of a loop over frames has begun another.
    var loops: UInt8 = 0
    /// The number of bits in the length of the last bytes, or of the last large frame, to estimate the next.
    private(set) var sizeClass: UInt8 = 0

    private struct Marks: OptionSet {
        var rawValue: UInt8 = 0
        static var hasEnded: Marks { Marks(rawValue: 1) }
        static var readsAhead: Marks { Marks(rawValue: 2) }
        static var isDraining: Marks { Marks(rawValue: 4) }
        static var isLastCall: Marks { Marks(rawValue: 32) }
        static var endsItself: Marks { Marks(rawValue: 8) }
        static var endsInSilence: Marks { Marks(rawValue: 16) }
    }

    /// True when the peer has ended, or the connection has failed.
    @inline(__always)
    var hasEnded: Bool { marks.contains(.hasEnded) }

    /// True when a loop that does not wait for its answers reads the connection, or has read it in chunks. The peer may
    /// then still expect an answer.
    var readsAhead: Bool {
        get { marks.contains(.readsAhead) }
        set { if newValue { marks.insert(.readsAhead) } else { marks.remove(.readsAhead) } }
    }

    /// True from the beginning of a drain on, when the frame loops check where they end.
    @inline(__always)
    var isDraining: Bool { marks.contains(.isDraining) }

    mutating func beginDrain() { marks.insert(.isDraining) }

    /// True in the last part of a drain's time, which only answers under way can prolong.
    @inline(__always)
    var isLastCall: Bool { marks.contains(.isLastCall) }

    mutating func beginLastCall() { marks.insert(.isLastCall) }

    /// True when a loop over chunks has no reason to end.
    @inline(__always)
    var goesOn: Bool { marks.isDisjoint(with: [.hasEnded, .isLastCall]) }

    var drainRule: DrainRule {
        get { marks.contains(.endsInSilence) ? .inSilence : marks.contains(.endsItself) ? .inPause : .afterFrame }
        set {
            marks.subtract([.endsItself, .endsInSilence])
            if newValue != .afterFrame { marks.insert(.endsItself) }
            if newValue == .inSilence { marks.insert(.endsInSilence) }
        }
    }

    @inline(__always)
    var isWaiting: Bool { reference != nil }
    var isWaitingForFrames: Bool { isWaiting && form == .frames }

    /// True when no other read is in progress.
    @inline(__always)
    var isFree: Bool { reference == nil && form != .chunk }

    func isWaiting(_ promise: PromiseCore) -> Bool { reference == promise.ref }

    var waiting: CoreRef? { reference }

    // MARK: The size of what is next

    /// True from 4 KiB on, when bytes are received where they stay: with a copy, an echo of 16 KiB takes 1.17 of the
    /// CPU time of the same echo in C, and 1.11 without.
    @inline(__always)
    var expectsMuch: Bool { sizeClass > 12 }
    /// The largest size class to make room for in advance.
    private static var mostExpected: UInt8 { 20 }

    @inline(__always)
    mutating func noteSize(_ count: Int) {
        sizeClass = UInt8(truncatingIfNeeded: Int.bitWidth - count.leadingZeroBitCount)
    }

    /// The power of two above the last size.
    var expectedRoom: Int { 1 << Int(min(sizeClass, Self.mostExpected)) }

    // MARK: Events

    /// Takes over the caller's reference. No other promise may be waiting, and the stream must not have ended.
    @inline(__always)
    mutating func keep(_ promise: CoreRef, _ form: InputForm, _ count: Int) {
        assert(reference == nil, "two promises wait for input")
        reference = promise
        self.form = form
        self.count = UInt32(truncatingIfNeeded: count)
    }

    /// Passes the reader's reference to the caller, who must settle or continue the promise.
    @inline(__always)
    mutating func take() -> CoreRef? { reference.take() }

    mutating func end() { marks.insert(.hasEnded) }

    // No promise is left here: a connection is not released while a read waits.
    deinit { reference?.release() }
}
