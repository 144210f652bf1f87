/// Builds a message of a protocol: bytes, integers, texts, and parts that follow their length.
///
/// ```swift
/// var message = ByteWriter()
/// message.append(UInt8(0x30))
/// try message.append(prefixedBy: UInt16.self) { $0.append("topic") }
/// connection.write(message.bytes)
/// ```
public struct ByteWriter: Sendable {
    /// What has been written.
    public private(set) var bytes: [UInt8]

    /// Makes a writer.
    /// - Parameter count: the number of bytes to reserve memory for.
    public init(reserving count: Int = 0) {
        bytes = []
        bytes.reserveCapacity(count)
    }

    /// Appends a copy of `bytes`.
    public mutating func append(_ bytes: some Sequence<UInt8>) { self.bytes.append(contentsOf: bytes) }

    /// Appends a copy of `bytes`.
    public mutating func append(_ bytes: RawSpan) { bytes.withUnsafeBytes { self.bytes.append(contentsOf: $0) } }

    /// Appends the UTF-8 of `text`.
    public mutating func append(_ text: String) { bytes.append(contentsOf: text.utf8) }

    /// Appends an integer, of the size of its type.
    public mutating func append<Value: FixedWidthInteger & BitwiseCopyable>(
        _ value: Value, _ order: ByteOrder = .bigEndian
    ) {
        withUnsafeBytes(of: order == .bigEndian ? value.bigEndian : value.littleEndian) { bytes.append(contentsOf: $0) }
    }

    /// Appends an integer in groups of seven bits, as `ByteReader.varint` reads it.
    public mutating func append(varint value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    /// Appends the decimal digits of an integer, behind a `-` if it is negative.
    public mutating func append(decimal value: some FixedWidthInteger) {
        if value < 0 { bytes.append(0x2D) }
        let first = bytes.count
        var rest = value.magnitude
        repeat {
            let (quotient, digit) = rest.quotientAndRemainder(dividingBy: 10)
            bytes.append(0x30 + UInt8(truncatingIfNeeded: digit))
            rest = quotient
        } while rest > 0
        bytes[first...].reverse()
    }

    /// Appends the UTF-8 of `text`, and a zero byte.
    public mutating func append(cString text: String) {
        append(text)
        bytes.append(0)
    }

    /// Appends what `body` appends, behind the number of its bytes.
    /// - Parameters:
    ///   - type: the type of the number, which does not include its own size.
    ///   - order: the order of the number's bytes.
    ///   - body: called once, inside this call.
    /// - Throws: `ByteError.limitExceeded` if the number does not fit into its type, and what `body` throws. Nothing is
    ///   appended then.
    public mutating func append<Length: FixedWidthInteger & UnsignedInteger & BitwiseCopyable>(
        prefixedBy type: Length.Type, _ order: ByteOrder = .bigEndian, _ body: (inout ByteWriter) throws -> Void
    ) throws {
        let start = bytes.count
        append(Length.zero)
        let first = bytes.count
        do {
            try body(&self)
            guard let length = Length(exactly: bytes.count - first) else {
                throw ByteError.limitExceeded(limit: Int(clamping: Length.max))
            }
            withUnsafeBytes(of: order == .bigEndian ? length.bigEndian : length.littleEndian) {
                bytes.replaceSubrange(start..<first, with: $0)
            }
        } catch {
            bytes.removeSubrange(min(start, bytes.count)...)
            throw error
        }
    }
}
