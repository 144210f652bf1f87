import Promises

/// The byte order of an integer.
public enum ByteOrder: Sendable {
    /// Most significant byte first: network byte order.
    case bigEndian
    /// Least significant byte first.
    case littleEndian
}

/// An error of a `ByteReader` or a `ByteWriter`.
public enum ByteError: Error, Hashable, Sendable {
    /// The input ends at least `missing` bytes early.
    case endOfInput(missing: Int)
    /// At least `missing` bytes have not arrived: replaces `endOfInput` in the reader of `DecodedFrame.reading`.
    case incomplete(missing: Int)
    /// The value has more than `limit` bytes.
    case limitExceeded(limit: Int)
    /// The byte at `position` is invalid UTF-8 or no digit, or makes an integer too large for its type.
    case malformed(position: Int)
}

extension ByteError: CustomStringConvertible {
    /// A sentence for people.
    public var description: String {
        switch self {
        case .endOfInput(let missing): "the input ends at least \(missing) bytes early"
        case .incomplete(let missing): "at least \(missing) bytes of the value have not arrived"
        case .limitExceeded(let limit): "a value of more than \(limit) bytes"
        case .malformed(let position): "the byte at position \(position) cannot be part of the value"
        }
    }
}

/// Reads the values of a protocol from bytes, front to back.
///
/// ```swift
/// /// A type of one byte, a number of two bytes, and a length-prefixed text.
/// struct RecordDecoder: FrameDecoder {
///     func decode(_ bytes: RawSpan) throws -> DecodedFrame<(UInt8, UInt16, String)> {
///         try .reading(bytes) { reader in
///             let type = try reader.byte()
///             let number = try reader.integer(as: UInt16.self)
///             let text = try reader.bytes(prefixedBy: UInt16.self, limit: 1024)
///             return (type, number, try String(utf8: text))
///         }
///     }
/// }
/// ```
///
/// The bytes are lent and never copied: a reader and the spans that it returns cannot leave their scope. A call that
/// throws has read nothing. Missing bytes throw `endOfInput`, or `incomplete` in the reader of `DecodedFrame.reading`
/// and its copies. A reader for a part of a frame throws `endOfInput`, because more input cannot complete it.
public struct ByteReader: ~Escapable {
    @usableFromInline let bytes: RawSpan

    @usableFromInline let mayGrow: Bool

    /// The array of the lent bytes, which the lender retains meanwhile.
    @usableFromInline let owner: UnsafePointer<[UInt8]>?

    @usableFromInline var offset = 0

    /// The number of bytes read so far.
    @inlinable public var position: Int { offset }

    /// Makes a reader for `bytes`.
    @inlinable
    @_lifetime(copy bytes)
    public init(_ bytes: RawSpan) { self.init(bytes, mayGrow: false, owner: nil) }

    @inlinable
    @_lifetime(copy bytes)
    init(_ bytes: RawSpan, mayGrow: Bool = false, owner: UnsafePointer<[UInt8]>? = nil) {
        self.bytes = bytes
        self.mayGrow = mayGrow
        self.owner = owner
    }

    @inlinable
    func missing(_ count: Int) -> ByteError {
        mayGrow ? .incomplete(missing: count) : .endOfInput(missing: count)
    }

    /// The number of unread bytes.
    @inlinable public var remaining: Int { bytes.byteCount - offset }

    /// True when all bytes have been read.
    @inlinable public var isAtEnd: Bool { remaining == 0 }

    // MARK: Bytes

    /// Reads a byte.
    @inlinable
    @_lifetime(self: copy self)
    public mutating func byte() throws(ByteError) -> UInt8 { try integer() }

    /// Reads `count` bytes; none if negative. First check a number that a peer has chosen.
    @inlinable
    @_lifetime(copy self)
    public mutating func bytes(_ count: Int) throws(ByteError) -> RawSpan {
        let count = max(count, 0)
        if count > remaining { throw missing(count - remaining) }
        let first = offset
        offset += count
        return bytes.extracting(first..<offset)
    }

    /// Reads all remaining bytes.
    @inlinable
    @_lifetime(copy self)
    public mutating func rest() -> RawSpan {
        let first = offset
        offset = bytes.byteCount
        return bytes.extracting(first..<offset)
    }

    /// Skips `count` bytes; none if negative.
    @inlinable
    @_lifetime(self: copy self)
    public mutating func skip(_ count: Int) throws(ByteError) { _ = try bytes(count) }

    /// Reads the bytes before the next `delimiter`, and skips the delimiter. With 0, reads a C string.
    /// - Parameters:
    ///   - delimiter: the byte that ends the value.
    ///   - limit: the maximum number of bytes before the delimiter.
    /// - Throws: `endOfInput` without a delimiter, or `limitExceeded`.
    @_lifetime(copy self)
    public mutating func bytes(until delimiter: UInt8, limit: Int = 65536) throws(ByteError) -> RawSpan {
        let end = position(of: delimiter)
        if end ?? remaining > limit { throw .limitExceeded(limit: limit) }
        guard let end else { throw missing(1) }
        let first = offset
        offset += end + 1
        return bytes.extracting(first..<first + end)
    }

    private func position(of delimiter: UInt8) -> Int? {
        // The span is alive, and the pointer stays in the call.
        bytes.extracting(offset..<bytes.byteCount).withUnsafeBytes {
            DelimiterDecoder.position(of: delimiter, in: $0, from: 0)
        }
    }

    /// Reads a line, without its `\n` or `\r\n`.
    /// - Parameter limit: the maximum number of bytes in the line.
    /// - Throws: `endOfInput` without a newline, or `limitExceeded`.
    @_lifetime(copy self)
    public mutating func line(limit: Int = 65536) throws(ByteError) -> RawSpan {
        let newline = position(of: 0x0A)
        let end = newline ?? remaining
        let hasReturn = end > 0 && bytes.unsafeLoad(fromByteOffset: offset + end - 1, as: UInt8.self) == 0x0D
        let length = hasReturn ? end - 1 : end
        if length > limit { throw .limitExceeded(limit: limit) }
        if newline == nil { throw missing(1) }
        let first = offset
        offset += end + 1
        return bytes.extracting(first..<first + length)
    }

    /// Reads a length, and then that many bytes.
    /// - Parameters:
    ///   - type: the length's type. The length does not count its own bytes.
    ///   - order: the length's byte order.
    ///   - limit: the maximum length. The peer chooses it, so refuse more than you are ready to keep.
    /// - Throws: `endOfInput` or `limitExceeded`.
    @inlinable
    @_lifetime(copy self)
    public mutating func bytes<Length: FixedWidthInteger & UnsignedInteger>(
        prefixedBy type: Length.Type, _ order: ByteOrder = .bigEndian, limit: Int
    ) throws(ByteError) -> RawSpan {
        let start = offset
        let length = try integer(as: Length.self, order)
        do throws(ByteError) {
            // The end of the value must not overflow, whatever the limit.
            guard let count = Int(exactly: length), count <= min(limit, .max - offset) else {
                throw .limitExceeded(limit: limit)
            }
            return try bytes(count)
        } catch {
            offset = start
            throw error
        }
    }

    /// Keeps `span`, which this reader has returned, beyond the call. In `forEachFrame`, a span of at least 16 KiB that
    /// fills at least half of its receive buffer is shared; any other is copied.
    public func keep(_ span: RawSpan) -> SharedBytes {
        guard span.byteCount >= SharedBytes.leastKept, let array = owner?.pointee, array.capacity / 2 <= span.byteCount
        else { return SharedBytes(span) }
        // Span and array are alive, and the pointers stay in the call.
        let offset = span.withUnsafeBytes { span in array.withUnsafeBytes { span.baseAddress! - $0.baseAddress! } }
        guard offset >= 0, offset <= array.count - span.byteCount else { return SharedBytes(span) }
        return SharedBytes(array)[offset..<offset + span.byteCount]
    }

    // MARK: Integers

    /// Reads an integer of its type's size.
    ///
    /// ```swift
    /// let number: UInt32 = try reader.integer()
    /// let offset = try reader.integer(as: Int64.self, .littleEndian)
    /// ```
    @inlinable
    @_lifetime(self: copy self)
    public mutating func integer<Value: FixedWidthInteger>(
        as type: Value.Type = Value.self, _ order: ByteOrder = .bigEndian
    ) throws(ByteError) -> Value {
        let size = Value.bitWidth / 8
        if size > remaining { throw missing(size - remaining) }
        // Combines single bytes, because a user-defined type may not allow all bit patterns. The optimiser makes this
        // one load.
        var value: Value = 0
        for index in 0..<size {
            // Within the span, by the check above.
            let byte = bytes.unsafeLoad(fromUncheckedByteOffset: offset + index, as: UInt8.self)
            let place = order == .bigEndian ? size - 1 - index : index
            value |= Value(truncatingIfNeeded: byte) << (8 * place)
        }
        offset += size
        return value
    }

    /// Reads an integer in groups of seven bits, the least significant first (LEB128), as in MQTT and Protocol Buffers.
    /// - Parameter limit: the maximum number of bytes, up to 10, which hold 64 bits.
    /// - Throws: `endOfInput`, `limitExceeded`, or `malformed` for more than 64 bits.
    @_lifetime(self: copy self)
    public mutating func varint(limit: Int = 10) throws(ByteError) -> UInt64 {
        var value: UInt64 = 0
        for index in 0..<max(0, min(limit, 10)) {
            if index >= remaining { throw missing(1) }
            // Within the span, by the check above.
            let byte = bytes.unsafeLoad(fromByteOffset: offset + index, as: UInt8.self)
            if index == 9 && byte > 1 { throw .malformed(position: offset + index) }
            value |= UInt64(byte & 0x7F) << (7 * UInt64(index))
            if byte < 0x80 {
                offset += index + 1
                return value
            }
        }
        throw .limitExceeded(limit: limit)
    }

    /// Reads a decimal integer, with an optional `-`, that ends at the next `delimiter`, and skips the delimiter.
    /// - Throws: `endOfInput` without a delimiter, `limitExceeded` if none follows within 40 bytes, or `malformed` if
    ///   the bytes are no integer that fits into `Value`.
    @inlinable
    @_lifetime(self: copy self)
    public mutating func decimal<Value: FixedWidthInteger>(
        until delimiter: UInt8, as type: Value.Type = Value.self
    ) throws(ByteError) -> Value {
        let start = offset
        let digits = try bytes(until: delimiter, limit: 40)
        guard let value = Value(decimal: digits) else {
            offset = start
            throw .malformed(position: start)
        }
        return value
    }
}

extension FixedWidthInteger {
    /// Makes an integer from decimal digits with an optional `-`; `nil` if other bytes occur or it does not fit.
    @inlinable
    public init?(decimal bytes: RawSpan) {
        let isNegative = bytes.byteCount > 0 && bytes.unsafeLoad(fromByteOffset: 0, as: UInt8.self) == 0x2D
        let first = isNegative ? 1 : 0
        if bytes.byteCount == first { return nil }
        var value: Self = 0
        for offset in first..<bytes.byteCount {
            let digit = bytes.unsafeLoad(fromByteOffset: offset, as: UInt8.self) &- 0x30
            guard digit < 10 else { return nil }
            let (tens, isTooLarge) = value.multipliedReportingOverflow(by: 10)
            let (next, hasOverflowed) =
                isNegative
                ? tens.subtractingReportingOverflow(Self(truncatingIfNeeded: digit))
                : tens.addingReportingOverflow(Self(truncatingIfNeeded: digit))
            if isTooLarge || hasOverflowed { return nil }
            value = next
        }
        self = value
    }
}

extension String {
    /// Makes a string from UTF-8 bytes.
    /// - Throws: `malformed` with the position of the first byte that is not UTF-8.
    public init(utf8 bytes: RawSpan) throws(ByteError) {
        // The span is alive, and the pointer stays in the call.
        let result = bytes.withUnsafeBytes { bytes in
            bytes.withMemoryRebound(to: UInt8.self) { bytes in
                do throws(UTF8.ValidationError) {
                    return Result<String, ByteError>.success(String(copying: try UTF8Span(validating: bytes.span)))
                } catch {
                    return .failure(.malformed(position: error.byteOffsets.lowerBound))
                }
            }
        }
        self = try result.get()
    }
}

extension Array where Element == UInt8 {
    /// Copies `bytes`.
    public init(_ bytes: RawSpan) { self = bytes.withUnsafeBytes { Array($0) } }
}

extension DecodedFrame {
    /// Makes a decoder's result from a frame that `body` reads. Each call reads from the front of `bytes`, so for
    /// frames that arrive in many parts, check the length first. `ByteError.incomplete` makes the frame incomplete.
    /// - Throws: `StreamError.limitExceeded` in place of `ByteError.limitExceeded`, or any other error from `body`.
    @inlinable
    public static func reading(
        _ bytes: RawSpan, _ body: (inout ByteReader) throws -> Frame
    ) throws -> DecodedFrame {
        var reader = ByteReader(bytes, mayGrow: true)
        do {
            let frame = try body(&reader)
            return .frame(frame, consumed: reader.position)
        } catch ByteError.incomplete(let missing) {
            return .incomplete(missing: missing)
        } catch ByteError.limitExceeded(let limit) {
            throw StreamError.limitExceeded(limit: limit)
        }
    }
}
