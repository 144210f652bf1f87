/// Finds the frames of a protocol in the bytes of a stream. `Connection.readFrame` and `Connection.forEachFrame` take
/// one.
///
/// ```swift
/// /// A type of one byte, then a length of one byte, then as many bytes.
/// struct RecordDecoder: FrameDecoder {
///     func decode(_ bytes: RawSpan) throws -> DecodedFrame<(type: UInt8, payload: [UInt8])> {
///         try .reading(bytes) { reader in
///             (try reader.byte(), [UInt8](try reader.bytes(prefixedBy: UInt8.self, limit: 255)))
///         }
///     }
/// }
/// ```
///
/// The library has `LineDecoder`, `DelimiterDecoder` and `LengthPrefixDecoder`.
public protocol FrameDecoder {
    associatedtype Frame

    /// Looks for a frame at the beginning of `bytes`.
    ///
    /// After `incomplete` the next call gets these bytes again with further ones behind them, so a decoder may store
    /// how far it has searched. After a frame, and after skipped bytes, the next call gets the bytes behind these.
    /// - Parameter bytes: all bytes that have arrived and were not consumed. The span is valid during the call only.
    /// - Returns: a frame with the number of its bytes, bytes to skip, or that the frame is incomplete.
    /// - Throws: an error about the bytes, such as `StreamError.limitExceeded`. The read is rejected with it and
    ///   consumes nothing. A decoder must throw beyond a limit of its own: otherwise a peer could fill the memory.
    mutating func decode(_ bytes: RawSpan) throws -> DecodedFrame<Frame>

    /// Makes a frame of what is left when the stream ends in order inside one; `nil`, the default, if that is none.
    /// - Parameter bytes: the bytes that `decode` has called incomplete; at least one. The frame takes all of them.
    /// - Returns: the last frame. Without one the read is rejected with `StreamError.endedEarly`.
    /// - Throws: an error about the bytes, as `decode`.
    mutating func decodeLast(_ bytes: RawSpan) throws -> Frame?

    /// What `StreamError.endedEarly` names when the stream ends inside a frame; `.frame` by default.
    var expectation: StreamError.Expectation { get }

    /// The memory, in bytes, that the decoder takes for bytes that it has consumed, such as the fragments of a message: by
    /// capacity, not by length. Asked for when a read, or a loop for its body, begins to wait; it counts in `ServeOptions.memoryLimit`. Zero by default:
    /// what has not been consumed, the connection counts itself.
    var heldBytes: Int { get }
}

extension FrameDecoder {
    /// Bytes without an end are no frame, unless a decoder says otherwise.
    @inlinable public mutating func decodeLast(_ bytes: RawSpan) throws -> Frame? { nil }

    /// What errors name as missing, unless a decoder says more: a frame.
    @inlinable public var expectation: StreamError.Expectation { .frame }

    /// Zero: a decoder consumes whole frames, unless it says more.
    @inlinable public var heldBytes: Int { 0 }
}

/// The result of a decoder.
public enum DecodedFrame<Frame> {
    /// A frame, which takes the first `consumed` bytes: at least one. With a number that is less, or more than there are, the
    /// read is rejected with `PromiseError.badInput`, which names the decoder, and consumes nothing.
    case frame(Frame, consumed: Int)
    /// The first `consumed` bytes are no part of a frame, such as empty lines between requests, and are dropped. If the
    /// stream ends behind them, it has ended between two frames. They belong to the time of the frame that follows them:
    /// see `FrameTimeouts`.
    ///
    /// Skip all such bytes in one call. Zero bytes count as `incomplete(missing: 1)`. A negative number, or more than there
    /// are, is an error as that of `frame`.
    case skipped(consumed: Int)
    /// The frame is incomplete and needs at least `missing` further bytes: 1 if the decoder does not know the number.
    case incomplete(missing: Int)
}
