import CLinux
import Promises
import ReactorLibc

/// The treatment of bytes after the last delimiter when the stream ends.
public enum LastFrame: Sendable {
    /// Rejects the read with `StreamError.endedEarly`.
    case reject
    /// Accepts the bytes as a frame, as Unix programs read lines.
    case accept
}

/// Decodes UTF-8 lines into strings without their `\n` or `\r\n`. For other bytes, use `DelimiterDecoder("\n")`.
///
/// Throws `StreamError.limitExceeded` if a line has more than `limit` bytes, or `StreamError.notUTF8`.
public struct LineDecoder: FrameDecoder, Sendable {
    private let limit: Int
    private let lastLine: LastFrame
    // The number of leading bytes known to contain no newline.
    private var searched = 0

    /// Makes a decoder for lines.
    /// - Parameters:
    ///   - limit: the maximum number of bytes per line.
    ///   - lastLine: the treatment of a last line without a newline.
    public init(limit: Int = 65536, lastLine: LastFrame = .reject) {
        self.limit = limit
        self.lastLine = lastLine
    }

    /// Finds the next line.
    @inline(__always)  // A separate call costs 46 instructions per line.
    public mutating func decode(_ bytes: RawSpan) throws -> DecodedFrame<String> {
        // The span is alive, and the pointer stays in the call.
        try bytes.withUnsafeBytes { try decode($0) }
    }

    @inline(__always)
    private mutating func decode(_ bytes: UnsafeRawBufferPointer) throws -> DecodedFrame<String> {
        let newline = DelimiterDecoder.position(of: 0x0A, in: bytes, from: searched)
        let end = newline ?? bytes.count
        let hasReturn = end > 0 && bytes[end - 1] == 0x0D
        let length = hasReturn ? end - 1 : end
        if length > limit { throw StreamError.limitExceeded(limit: limit) }
        guard newline != nil else {
            searched = end
            return .incomplete(missing: 1)
        }
        searched = 0
        if let text = String(shortASCII: UnsafeRawBufferPointer(rebasing: bytes[..<length])) {
            return .frame(text, consumed: end + 1)
        }
        // `String(validating:)` looks up metadata in each call: 910 of the 1,600 instructions per line.
        let line = bytes.bindMemory(to: UInt8.self).span.extracting(first: length)
        do throws(UTF8.ValidationError) {
            return .frame(String(copying: try UTF8Span(validating: line)), consumed: end + 1)
        } catch {
            throw StreamError.notUTF8(position: error.byteOffsets.lowerBound)
        }
    }

    /// Returns `bytes` as a line if the last line may lack its newline.
    public mutating func decodeLast(_ bytes: RawSpan) throws -> String? {
        if lastLine == .reject { return nil }
        let line = [UInt8](bytes) + [0x0A]
        if case .frame(let text, _) = try decode(line.span.bytes) { return text }
        return nil
    }

    /// A newline.
    public var expectation: StreamError.Expectation { .delimiter([0x0A]) }
}

/// Decodes the bytes before each delimiter, without the delimiter.
///
/// Throws `StreamError.limitExceeded` if more than `limit` bytes precede the delimiter. An empty delimiter is never
/// found, so the decoder throws at the limit. `read(until:)` refuses it with `EINVAL`.
public struct DelimiterDecoder: FrameDecoder, Sendable {
    private let delimiter: [UInt8]
    private let limit: Int
    private let lastFrame: LastFrame
    // The number of leading positions at which no delimiter begins.
    private var searched = 0

    /// Makes a decoder for frames that end with the given bytes.
    /// - Parameters:
    ///   - delimiter: the bytes that end a frame; at least one.
    ///   - limit: the maximum number of bytes before the delimiter.
    ///   - lastFrame: the treatment of a last frame without a delimiter.
    public init(_ delimiter: some Collection<UInt8>, limit: Int = 65536, lastFrame: LastFrame = .reject) {
        self.delimiter = Array(delimiter)
        self.limit = limit
        self.lastFrame = lastFrame
    }

    /// Makes a decoder for a delimiter string of at least one character, encoded as UTF-8.
    public init(_ delimiter: String, limit: Int = 65536, lastFrame: LastFrame = .reject) {
        self.init(delimiter.utf8, limit: limit, lastFrame: lastFrame)
    }

    /// Finds the next delimiter.
    public mutating func decode(_ bytes: RawSpan) throws -> DecodedFrame<[UInt8]> {
        // The span is alive, and the pointer stays in the call.
        try bytes.withUnsafeBytes { bytes in
            let found =
                delimiter.count == 1
                ? Self.position(of: delimiter[0], in: bytes, from: searched) : position(in: bytes, from: searched)
            guard let end = found else {
                if bytes.count - delimiter.count >= limit { throw StreamError.limitExceeded(limit: limit) }
                searched = max(searched, bytes.count - delimiter.count + 1)
                return .incomplete(missing: 1)
            }
            searched = 0
            if end > limit { throw StreamError.limitExceeded(limit: limit) }
            return .frame([UInt8](UnsafeRawBufferPointer(rebasing: bytes[..<end])), consumed: end + delimiter.count)
        }
    }

    /// Returns `bytes` as a frame if the last frame may lack its delimiter.
    public mutating func decodeLast(_ bytes: RawSpan) throws -> [UInt8]? {
        if lastFrame == .reject { return nil }
        searched = 0
        if bytes.byteCount > limit { throw StreamError.limitExceeded(limit: limit) }
        return [UInt8](bytes)
    }

    /// The delimiter.
    public var expectation: StreamError.Expectation { .delimiter(delimiter) }

    @inline(__always)
    static func position(of byte: UInt8, in bytes: UnsafeRawBufferPointer, from start: Int) -> Int? {
        guard start < bytes.count, let base = bytes.baseAddress,
            let hit = memchr(base + start, CInt(byte), bytes.count - start)
        else { return nil }
        return UnsafeRawPointer(hit) - base
    }

    private func position(in bytes: UnsafeRawBufferPointer, from start: Int) -> Int? {
        guard start < bytes.count, !delimiter.isEmpty, let base = bytes.baseAddress,
            let hit = memmem(base + start, bytes.count - start, delimiter, delimiter.count)
        else { return nil }
        return UnsafeRawPointer(hit) - base
    }
}

/// Decodes length-prefixed payloads. The length, in network byte order, does not count its own bytes.
///
/// ```swift
/// connection.forEachFrame(LengthPrefixDecoder<UInt32>(limit: 1 << 20)) { payload, _ in … }
/// ```
///
/// Throws `StreamError.limitExceeded` if a length exceeds `limit`, before allocating memory.
public struct LengthPrefixDecoder<Length: FixedWidthInteger & UnsignedInteger>: FrameDecoder, Sendable {
    @usableFromInline let limit: Int

    /// Makes a decoder for payloads.
    /// - Parameter limit: the maximum number of bytes per payload.
    @inlinable public init(limit: Int = 65536) { self.limit = limit }

    /// Finds the next payload.
    @inlinable
    public func decode(_ bytes: RawSpan) throws -> DecodedFrame<[UInt8]> {
        try .reading(bytes) { [UInt8](try $0.bytes(prefixedBy: Length.self, limit: limit)) }
    }
}
