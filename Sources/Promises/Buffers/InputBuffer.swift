/// Bytes of a stream that were received and that no read has consumed.
struct InputBuffer {
    private var bytes: [UInt8] = []
    // The index of the first byte that has not been taken.
    private var start = 0

    var count: Int { bytes.count - start }
    /// The array is released when the last byte is taken.
    var isEmpty: Bool { bytes.isEmpty }
    /// The memory of the bytes: with those that were taken, and with room for further ones.
    var capacity: Int { bytes.capacity }

    /// - Parameter missing: how many bytes are expected before any is taken, the new ones among them; `nil` if unknown.
    mutating func append(_ new: UnsafeRawBufferPointer, of missing: Int? = nil) {
        // Amortized: for each byte that has been taken, at most one byte is moved to the front.
        if start > 0 && start * 2 >= bytes.count {
            bytes.removeFirst(start)
            start = 0
        }
        bytes.makeRoom(for: new.count, of: missing)
        bytes.append(contentsOf: new)
    }

    /// Appends a whole array, which is not copied if nothing else is there.
    mutating func append(_ new: [UInt8]) {
        if bytes.isEmpty { bytes = new } else { new.withUnsafeBytes { append($0) } }
    }

    /// Moves the bytes to less memory if they take less than a quarter of theirs: a peer may have sent a large frame, and the
    /// beginning of a small one.
    mutating func shrink() {
        guard bytes.capacity > Self.leastShrunk, count * 4 < bytes.capacity else { return }
        bytes = bytes.withUnsafeBytes { [UInt8](UnsafeRawBufferPointer(rebasing: $0[start...])) }
        start = 0
    }

    /// What a small read may leave: it is used again by the next one.
    private static var leastShrunk: Int { 4096 }

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

extension [UInt8] {
    /// Makes room for `count` further bytes of a peer, and for what may follow them, so that each byte is moved a few times at
    /// the most. What a peer announces takes memory only as it arrives: at most as much again as there is.
    /// - Parameter missing: how many bytes are to come, these among them; `nil` if that is not known.
    package mutating func makeRoom(for count: Int, of missing: Int? = nil) {
        let needed = self.count + count
        if needed <= capacity { return }
        // The first bytes are often all of them.
        guard let missing else { return isEmpty ? () : reserveCapacity(needed + needed / 2) }
        reserveCapacity(self.count + Swift.max(count, Swift.min(missing, needed + count)))
    }
}
