import Promises

/// Finds the frames of a protocol in a stream, for `Connection.readFrame` and `Connection.forEachFrame`.
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
    /// After `incomplete`, the next call gets the same bytes again, followed by new ones. So a decoder may store how
    /// far it has searched. After a frame or skipped bytes, the next call gets the bytes after them.
    /// - Parameter bytes: all unconsumed bytes, valid only during the call.
    /// - Returns: a frame and its length, the number of bytes to skip, or that the frame is incomplete.
    /// - Throws: an error about the bytes, such as `StreamError.limitExceeded`. It rejects the read, which consumes
    ///   nothing. A decoder must throw beyond some limit, or a peer could fill the memory.
    mutating func decode(_ bytes: RawSpan) throws -> DecodedFrame<Frame>

    /// Makes a frame from the remaining bytes when the peer ends the stream inside a frame. The default returns `nil`.
    /// - Parameter bytes: the bytes that `decode` has called incomplete; at least one. The frame consumes all of them.
    /// - Returns: the last frame, or `nil` if the bytes are none. Then the read is rejected with
    ///   `StreamError.endedEarly`.
    /// - Throws: an error about the bytes, like `decode`.
    mutating func decodeLast(_ bytes: RawSpan) throws -> Frame?

    /// The missing part that `StreamError.endedEarly` names when the stream ends inside a frame; `.frame` by default.
    var expectation: StreamError.Expectation { get }

    /// The memory, in bytes of capacity, that the decoder keeps after consuming the bytes, such as fragments of a
    /// message. Read whenever a read, or a read loop's closure, begins to wait. Counts towards
    /// `ServeOptions.memoryLimit`. Zero by default.
    var heldBytes: Int { get }
}

extension FrameDecoder {
    /// Returns `nil`: bytes without an end are not a frame.
    @inlinable public mutating func decodeLast(_ bytes: RawSpan) throws -> Frame? { nil }

    /// A frame.
    @inlinable public var expectation: StreamError.Expectation { .frame }

    /// Zero: most decoders consume whole frames.
    @inlinable public var heldBytes: Int { 0 }
}

/// The result of a decoder.
public enum DecodedFrame<Frame> {
    /// A frame that takes the first `consumed` bytes, at least one. An invalid number rejects the read with
    /// `PromiseError.badInput`, which names the decoder, and consumes nothing.
    case frame(Frame, consumed: Int)
    /// The first `consumed` bytes are not part of a frame, such as empty lines between requests, and are dropped. A
    /// stream that ends after them has ended between two frames. Their time counts as the next frame's: see
    /// `FrameTimeouts`. Skip all of them in one call. Zero bytes count as `incomplete(missing: 1)`. An invalid number
    /// is the same error as for `frame`.
    case skipped(consumed: Int)
    /// The frame needs at least `missing` further bytes. Pass 1 if the decoder does not know the number.
    case incomplete(missing: Int)
}
