import Promises
import Reactor

/// The input that a promise waits for. The order matters: some properties compare the raw values.
@usableFromInline
enum InputForm: UInt8 {
    /// Any bytes, for `read`.
    case bytes
    /// Any bytes, for `receive`.
    case array
    /// The next chunk of `forEachChunk`, which occupies the reader until the loop ends.
    case chunk
    /// The end of a filter's handshake.
    case handshake
    /// A frame, or a number of bytes.
    case frame
    /// The next frame of a loop, or of a sequence. A drain ends the wait.
    case frames

    /// True when the read takes whatever arrives, up to a number of bytes.
    @inline(__always)
    var isOfBytes: Bool { rawValue <= InputForm.array.rawValue }
    /// True when the read waits for frames, with the limits of `frameTimeouts`.
    @inline(__always)
    var isOfFrames: Bool { rawValue >= InputForm.frame.rawValue }
    /// True when input that arrives outside of an event continues the read in a job.
    var continuesInJob: Bool { self == .chunk || self == .frames }
}

/// The reading side of a connection: the promise that waits for input, and whether more can come.
///
/// A promise waits from `keep` until `take`. A `forEachChunk` occupies the reader as long as its `ChunkLoop` exists,
/// even while its body runs. In any state, `ColdState.input` may hold bytes that no read has consumed. Reads get these
/// bytes before the end of the stream.
struct ConnectionReader: ~Copyable {
    // The fields fill the 16 bytes that `Connection` has for them.
    /// The waiting promise. Owned; passing it to the loop's queue needs no counting.
    private var reference: CoreRef?
    /// For `bytes` and `array`, the maximum to receive. For other forms, the number of buffered bytes to wait for.
    private(set) var count: UInt32 = 0
    /// The form of the wait; `chunk` during all of a `forEachChunk`.
    var form = InputForm.bytes
    private var marks = Marks()
    /// The nesting depth of loops over frames.
    var loops: UInt8 = 0
    /// The number of bits in the size of the last bytes, or of the last large frame; predicts the next size.
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

    /// True once a drain has begun: frame loops then check where they end.
    @inline(__always)
    var isDraining: Bool { marks.contains(.isDraining) }

    mutating func beginDrain() { marks.insert(.isDraining) }

    /// True in the last part of a drain's time, which is only for answers under way.
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

    @inline(__always)
    var isFree: Bool { reference == nil && form != .chunk }

    func isWaiting(_ promise: PromiseCore) -> Bool { reference == promise.ref }

    var waiting: CoreRef? { reference }

    // MARK: The size of what is next

    /// True when at least 4 KiB are expected, which are received where they stay. An echo of 16 KiB then takes 1.11
    /// times the CPU time of the same echo in C; with a copy, 1.17 times.
    @inline(__always)
    var expectsMuch: Bool { sizeClass > 12 }
    /// The largest size class to make room for in advance.
    private static var mostExpected: UInt8 { 20 }

    @inline(__always)
    mutating func noteSize(_ count: Int) {
        sizeClass = UInt8(truncatingIfNeeded: Int.bitWidth - count.leadingZeroBitCount)
    }

    /// The power of two above the last size, at most 1 MiB.
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

    // Normally no promise is left, because a connection is not released while a read waits.
    deinit { reference?.release() }
}
