/// Immutable bytes in shared memory, for values that are stored or sent to many clients. Copies and parts refer to the
/// same memory, which is released with the last of them.
///
/// ```swift
/// let page = SharedBytes(Array("a large page".utf8))
/// let served = listener.serve { connection in
///     connection.write { output in
///         output.append("12\r\n")
///         output.append(page)
///     }
/// }
/// ```
///
/// A connection sends large values in place (`ByteWriter.append`). `ByteReader.keep` makes one from a large payload.
public struct SharedBytes: Sendable {
    @usableFromInline
    enum Memory: Sendable {
        case array([UInt8])
        case foreign(ForeignMemory)
    }

    private let memory: Memory
    private let start: Int
    /// The number of bytes.
    public let count: Int

    /// The minimum size to share. Copying fewer bytes is cheaper.
    static var leastKept: Int { 16_384 }

    private init(_ memory: Memory, _ start: Int, _ count: Int) {
        self.memory = memory
        self.start = start
        self.count = count
    }

    /// Shares an array, without a copy.
    public init(_ bytes: [UInt8]) { self.init(.array(bytes), 0, bytes.count) }

    /// Copies lent bytes.
    public init(_ bytes: RawSpan) { self.init([UInt8](bytes)) }

    /// Shares another owner's memory, such as a mapped file, without a copy.
    /// - Parameters:
    ///   - memory: bytes that must not change until `release` is called.
    ///   - release: called once, on the thread that drops the last reference.
    public init(unsafe memory: UnsafeRawBufferPointer, release: @escaping @Sendable () -> Void) {
        self.init(.foreign(ForeignMemory(memory, release)), 0, memory.count)
    }

    package var isEmpty: Bool { count == 0 }

    /// Returns a part of the bytes, in the same memory.
    /// - Parameter range: positions from 0 to `count`.
    public subscript(range: Range<Int>) -> SharedBytes {
        precondition(range.lowerBound >= 0 && range.upperBound <= count, "bytes \(range) of \(count)")
        return SharedBytes(memory, start + range.lowerBound, range.count)
    }

    /// Lends the bytes to `body`.
    public func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        switch memory {
        case .array(let array):
            return try array.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0[start..<start + count])) }
        case .foreign(let memory):
            defer { withExtendedLifetime(memory) {} }
            return try body(UnsafeRawBufferPointer(rebasing: memory.bytes[start..<start + count]))
        }
    }

    var range: Range<Int> { start..<start + count }

    /// Identifies the memory while this value exists.
    var extent: (address: UnsafeRawPointer?, count: Int) {
        switch memory {
        case .array(let array): (array.withUnsafeBytes { $0.baseAddress }, array.capacity)
        case .foreign(let memory): (memory.bytes.baseAddress, memory.bytes.count)
        }
    }
}

extension SharedBytes: Hashable {
    /// Compares the bytes.
    public static func == (one: SharedBytes, other: SharedBytes) -> Bool {
        one.withUnsafeBytes { one in other.withUnsafeBytes { one.elementsEqual($0) } }
    }

    /// Hashes the bytes.
    public func hash(into hasher: inout Hasher) { withUnsafeBytes { hasher.combine(bytes: $0) } }
}

extension Array where Element == UInt8 {
    /// Copies `bytes`.
    public init(_ bytes: SharedBytes) { self = bytes.withUnsafeBytes { Array($0) } }
}

extension [SharedBytes] {
    var joined: [UInt8] {
        var joined: [UInt8] = []
        joined.reserveCapacity(reduce(0) { $0 + $1.count })
        for piece in self { piece.withUnsafeBytes { joined.append(contentsOf: $0) } }
        return joined
    }
}

/// Memory released with the last reference to this object.
// @unchecked: both properties are constant, nothing writes to the memory, and any thread may call `release`.
@usableFromInline
final class ForeignMemory: @unchecked Sendable {
    let bytes: UnsafeRawBufferPointer
    private let release: @Sendable () -> Void

    init(_ bytes: UnsafeRawBufferPointer, _ release: @escaping @Sendable () -> Void) {
        self.bytes = bytes
        self.release = release
    }

    deinit { release() }
}
