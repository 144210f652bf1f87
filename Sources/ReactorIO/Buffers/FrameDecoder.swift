import Promises

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
    /// After `incomplete` the next call gets these bytes again, followed by further ones, so a decoder may store how
    /// far it has searched. After a frame, and after skipped bytes, the next call gets the bytes after these.
    /// - Parameter bytes: all received bytes that were not consumed. The span is valid during the call only.
    /// - Returns: a frame with the number of its bytes, bytes to skip, or that the frame is incomplete.
    /// - Throws: an error about the bytes, such as `StreamError.limitExceeded`. The read is rejected with it and
    ///   consumes nothing. A decoder must throw beyond some limit: otherwise a peer could fill the memory.
    mutating func decode(_ bytes: RawSpan) throws -> DecodedFrame<Frame>

    /// Makes a frame of the rest when the stream ends in order inside one; returns `nil`, the default, if that is not a
    /// frame.
    /// - Parameter bytes: the bytes that `decode` has called incomplete; at least one. The frame takes all of them.
    /// - Returns: the last frame. Without one the read is rejected with `StreamError.endedEarly`.
    /// - Throws: an error about the bytes, as `decode`.
    mutating func decodeLast(_ bytes: RawSpan) throws -> Frame?

    /// The expectation that `StreamError.endedEarly` names when the stream ends inside a frame; `.frame` by default.
    var expectation: StreamError.Expectation { get }

    /// The memory, in bytes, that the decoder takes for consumed bytes, such as the fragments of a message: by
    /// capacity, not by length. Read when a read, or a loop for its body, begins to wait; it counts in
    /// `ServeOptions.memoryLimit`. Zero by default: the connection counts unconsumed bytes itself.
    var heldBytes: Int { get }
}

extension FrameDecoder {
    /// By default, bytes without an end are not a frame.
    @inlinable public mutating func decodeLast(_ bytes: RawSpan) throws -> Frame? { nil }

    /// The default: a frame.
    @inlinable public var expectation: StreamError.Expectation { .frame }

    /// Zero: most decoders consume whole frames.
    @inlinable public var heldBytes: Int { 0 }
}

/// The result of a decoder.
public enum DecodedFrame<Frame> {
    /// A frame, which takes the first `consumed` bytes: at least one. With a smaller number, or more than there are,
    /// the read is rejected with `PromiseError.badInput`, which names the decoder, and consumes nothing.
    case frame(Frame, consumed: Int)
    /// The first `consumed` bytes are not part of a frame, such as empty lines between requests, and are dropped. If
    /// the stream ends after them, it has ended between two frames. They count in the time of the next frame: see
    /// `FrameTimeouts`.
    ///
    /// Skip all such bytes in one call. Zero bytes count as `incomplete(missing: 1)`. A negative number, or more than
    /// there are, is an error as for `frame`.
    case skipped(consumed: Int)
    /// The frame is incomplete and needs at least `missing` further bytes; 1 if the decoder does not know the number.
    case incomplete(missing: Int)
}
