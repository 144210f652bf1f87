import Reactor

/// Builds a protocol message from bytes, integers, strings and length-prefixed parts.
///
/// ```swift
/// var message = ByteWriter()
/// message.append(UInt8(0x30))
/// try message.append(prefixedBy: UInt16.self) { $0.append("topic") }
/// connection.write(message.bytes)
/// ```
public struct ByteWriter: Sendable {
    /// The bytes written so far.
    @inlinable public var bytes: [UInt8] { shared == nil ? written : joined }

    @usableFromInline var written: [UInt8] = []

    /// Bytes to send in place, after the first `place` bytes of `written`.
    @usableFromInline var shared: [(place: Int, bytes: SharedBytes)]?

    /// Makes a writer.
    /// - Parameter count: the number of bytes to reserve.
    @inlinable
    public init(reserving count: Int = 0) {
        // Even reserving nothing takes a hundred instructions.
        if count > 0 { written.reserveCapacity(count) }
    }

    /// - Parameter memory: an empty array whose memory is reused.
    @inlinable
    init(_ memory: consuming [UInt8]) { written = memory }

    /// Appends a copy of `bytes`.
    @inlinable
    public mutating func append(_ bytes: some Sequence<UInt8>) { written.append(contentsOf: bytes) }

    /// Appends a copy of `bytes`.
    @inlinable
    public mutating func append(_ bytes: RawSpan) { bytes.withUnsafeBytes { written.append(contentsOf: $0) } }

    /// Appends shared bytes. From 16 KiB on, `Connection.write` sends them in place, in one call with the bytes around
    /// them, and retains their memory until the kernel has accepted them.
    public mutating func append(_ bytes: SharedBytes) {
        if bytes.count < SharedBytes.leastKept { return bytes.withUnsafeBytes { written.append(contentsOf: $0) } }
        let part = (place: written.count, bytes: bytes)
        if shared?.append(part) == nil { shared = [part] }
    }

    /// The number of shared bytes, which are not in `written`.
    @usableFromInline var sharedCount: Int { shared?.reduce(0) { $0 + $1.bytes.count } ?? 0 }

    var pieces: [SharedBytes] {
        var pieces: [SharedBytes] = []
        let own = SharedBytes(written)
        var place = 0
        for part in shared ?? [] {
            if part.place > place { pieces.append(own[place..<part.place]) }
            pieces.append(part.bytes)
            place = part.place
        }
        if place < own.count { pieces.append(own[place..<own.count]) }
        return pieces
    }

    @usableFromInline var joined: [UInt8] { pieces.joined }

    /// Appends the UTF-8 bytes of `text`.
    @inlinable
    public mutating func append(_ text: String) {
        // The view would be appended byte by byte.
        let isDone: Void? = text.utf8.withContiguousStorageIfAvailable { append(copying: UnsafeRawBufferPointer($0)) }
        if isDone == nil { written.append(contentsOf: text.utf8) }
    }

    @usableFromInline
    mutating func append(copying bytes: UnsafeRawBufferPointer) {
        guard let from = bytes.baseAddress else { return }
        let count = bytes.count
        append(atMost: count) { place in
            let to = place.baseAddress!
            // Most strings are short. Copying two overlapping words takes a third of a call's instructions.
            if 8...16 ~= count {
                let last = from.loadUnaligned(fromByteOffset: count - 8, as: UInt64.self)
                to.storeBytes(of: from.loadUnaligned(as: UInt64.self), as: UInt64.self)
                to.storeBytes(of: last, toByteOffset: count - 8, as: UInt64.self)
            } else {
                to.copyMemory(from: from, byteCount: count)
            }
            return count
        }
    }

    /// Appends at most `count` bytes. `body` writes them in place, and returns how many it wrote.
    @inlinable @inline(__always)
    package mutating func append(atMost count: Int, _ body: (UnsafeMutableRawBufferPointer) -> Int) {
        written.append(atMost: count, body)
    }

    /// Appends an integer in its type's size.
    @inlinable
    public mutating func append<Value: FixedWidthInteger>(_ value: Value, _ order: ByteOrder = .bigEndian) {
        for place in 0..<Value.bitWidth / 8 { written.append(Self.byte(place, of: value, order)) }
    }

    /// Returns the byte at index `place` of the encoded integer.
    @inlinable
    static func byte<Value: FixedWidthInteger>(_ place: Int, of value: Value, _ order: ByteOrder) -> UInt8 {
        let place = order == .bigEndian ? Value.bitWidth / 8 - 1 - place : place
        return UInt8(truncatingIfNeeded: value >> (8 * place))
    }

    /// Appends an integer in groups of seven bits, as `ByteReader.varint` reads it.
    public mutating func append(varint value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            written.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        written.append(UInt8(rest))
    }

    /// Appends the decimal digits of an integer, after a `-` if it is negative.
    @inlinable
    public mutating func append(decimal value: some FixedWidthInteger) {
        if value < 0 { written.append(0x2D) }
        let magnitude = value.magnitude
        if magnitude < 10 { return written.append(0x30 + UInt8(truncatingIfNeeded: magnitude)) }
        if let word = UInt64(exactly: magnitude) { append(digitsOf: word) } else { append(String(magnitude)) }
    }

    @usableFromInline
    mutating func append(digitsOf value: UInt64) {
        // At most 20 digits, from the last to the first.
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
            var (first, rest) = (20, value)
            repeat {
                first -= 1
                digits[first] = 0x30 + UInt8(truncatingIfNeeded: rest % 10)
                rest /= 10
            } while rest > 0
            written.append(contentsOf: UnsafeBufferPointer(rebasing: digits[first...]))
        }
    }

    /// Appends a length, and then the bytes that `body` appends.
    /// - Parameters:
    ///   - type: the length's type. The length does not count its own bytes.
    ///   - order: the length's byte order.
    ///   - body: called once, inside this call.
    /// - Throws: `ByteError.limitExceeded` if the length does not fit into its type, or the error from `body`. Then
    ///   nothing is appended.
    @inlinable
    public mutating func append<Length: FixedWidthInteger & UnsignedInteger>(
        prefixedBy type: Length.Type, _ order: ByteOrder = .bigEndian, _ body: (inout ByteWriter) throws -> Void
    ) throws {
        let start = written.count
        append(Length.zero)
        let first = written.count
        let (before, beforeCount) = (shared, sharedCount)
        do {
            try body(&self)
            // `body` may have replaced the writer with one that has fewer bytes.
            guard written.count >= first,
                let length = Length(exactly: written.count - first + sharedCount - beforeCount)
            else {
                throw ByteError.limitExceeded(limit: Int(clamping: Length.max))
            }
            for place in 0..<first - start { written[start + place] = Self.byte(place, of: length, order) }
        } catch {
            // If fewer bytes remain than before, the shared bytes have lost their places.
            shared = written.count < start ? nil : before
            written.removeSubrange(min(start, written.count)...)
            throw error
        }
    }
}
