/// Finds the frames of a protocol in the bytes of a stream. For `Connection.readFrame` and `Connection.forEachFrame`.
///
/// ```swift
/// /// A type of one byte, then a length of one byte, then as many bytes.
/// struct RecordDecoder: FrameDecoder {
///     func decode(_ bytes: RawSpan) throws -> DecodedFrame<(type: UInt8, payload: [UInt8])> {
///         guard bytes.byteCount >= 2 else { return .incomplete(missing: 2 - bytes.byteCount) }
///         let count = 2 + Int(bytes.unsafeLoad(fromByteOffset: 1, as: UInt8.self))
///         guard bytes.byteCount >= count else { return .incomplete(missing: count - bytes.byteCount) }
///         let record = bytes.withUnsafeBytes { ($0[0], [UInt8]($0[2..<count])) }
///         return .frame(record, consumed: count)
///     }
/// }
/// ```
///
/// `LineDecoder`, `DelimiterDecoder` and `LengthPrefixDecoder` are ready made.
public protocol FrameDecoder {
    associatedtype Frame

    /// Looks for a frame at the beginning of `bytes`, which are all bytes that have arrived and were not consumed.
    ///
    /// After `incomplete` it is called again with these bytes and further ones behind them, so it may remember how far
    /// it has searched. After a frame, and after bytes that it has skipped, it is called with what follows them. The
    /// span is lent for the call.
    /// - Throws: what is wrong with the bytes, such as `StreamError.limitExceeded`: the read is rejected with it, and
    ///   consumes nothing. Without a limit of its own a decoder lets the peer fill the memory.
    mutating func decode(_ bytes: RawSpan) throws -> DecodedFrame<Frame>

    /// What the decoder expects, for the error when the stream ends inside of a frame. A frame, unless the decoder says
    /// more.
    var expectation: StreamError.Expectation { get }
}

extension FrameDecoder {
    /// A frame.
    @inlinable public var expectation: StreamError.Expectation { .frame }
}

/// What a decoder has found.
public enum DecodedFrame<Frame> {
    /// A frame, which takes the first `consumed` bytes.
    case frame(Frame, consumed: Int)
    /// The first `consumed` bytes belong to no frame, such as empty lines between requests: they are dropped. If the
    /// peer ends behind them, it has ended between two frames.
    ///
    /// Skip what can be skipped in one call. Zero bytes or fewer are as `incomplete(missing: 1)`.
    case skipped(consumed: Int)
    /// The frame is not complete. At least `missing` more bytes are needed: 1 if that is not known.
    case incomplete(missing: Int)
}
