/// Bytes of a stream that were received and that no read has consumed.
struct InputBuffer {
    private var bytes: [UInt8] = []
    // The index of the first byte that has not been taken.
    private var start = 0

    var count: Int { bytes.count - start }
    /// The array is released when the last byte is taken.
    var isEmpty: Bool { bytes.isEmpty }

    mutating func append(_ new: UnsafeRawBufferPointer) {
        // Amortized: for each byte that has been taken, at most one byte is moved to the front.
        if start > 0 && start * 2 >= bytes.count {
            bytes.removeFirst(start)
            start = 0
        }
        bytes.append(contentsOf: new)
    }

    /// Appends a whole array, which is not copied if nothing else is there.
    mutating func append(_ new: [UInt8]) {
        if bytes.isEmpty { bytes = new } else { new.withUnsafeBytes { append($0) } }
    }

    /// Reserves memory for further bytes, so that these need not be moved while they arrive.
    mutating func reserve(_ count: Int) {
        if start == 0 { bytes.reserveCapacity(count) }
    }

    /// The first `count` bytes, which must be there.
    mutating func take(_ count: Int) -> [UInt8] {
        var taken: [UInt8] = []
        if start == 0 && count == bytes.count {
            swap(&taken, &bytes)
        } else {
            // An array of a slice would retain the array of all bytes, and copy by a slower way.
            taken = bytes.withUnsafeBytes { [UInt8](UnsafeRawBufferPointer(rebasing: $0[start..<start + count])) }
        }
        drop(count)
        return taken
    }

    /// Drops the first `count` bytes. The memory is released with the last byte: an idle connection holds none.
    mutating func drop(_ count: Int) {
        start += count
        guard start >= bytes.count else { return }
        bytes = []
        start = 0
    }

    /// Lends all bytes to `body`, and drops as many as it returns.
    ///
    /// `body` may be user code that closes the connection, which drops the bytes. Therefore the array is retained
    /// during the call, and the number of dropped bytes is limited to those that are left.
    /// - Parameter callsUser: false if `body` calls no code of the user's; nothing is retained then.
    @inline(__always)
    mutating func consume(callsUser: Bool, _ body: (UnsafeRawBufferPointer) throws -> Int) rethrows {
        if !callsUser {
            return drop(try bytes.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0[self.start...])) })
        }
        let (bytes, start) = (Self.retaining(bytes), start)
        let consumed = try bytes.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0[start...])) }
        if consumed > 0 { drop(min(consumed, count)) }
    }

    /// Lends all bytes to `body`, which calls user code: the array is retained during the call.
    @inline(__always)
    func lend<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        let (bytes, start) = (Self.retaining(bytes), start)
        return try bytes.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0[start...])) }
    }

    /// The array, with a reference of its own. A plain copy has none in release builds: the optimizer takes the property for
    /// unchanged while it is being accessed, and counts on the reference that is there. It must not see what this returns.
    @inline(never) @_optimize(none)
    private static func retaining(_ bytes: [UInt8]) -> [UInt8] { bytes }

    /// Whether the byte at `address`, of an array that was lent and is still retained, is the first that was not taken.
    func begins(at address: UnsafeRawPointer) -> Bool {
        !bytes.isEmpty && bytes.withUnsafeBytes { $0.baseAddress! + start == address }
    }
}
