/// The bytes received from a stream that no read has consumed.
struct InputBuffer {
    private var bytes: [UInt8] = []
    private var start = 0

    var count: Int { bytes.count - start }
    /// Taking the last byte releases the array.
    var isEmpty: Bool { bytes.isEmpty }
    /// The memory in use, including consumed bytes and free room. The system assigns no page to room that was never
    /// written, so free room counts only up to the number of bytes. After each step that leaves fewer bytes, they are
    /// moved to less memory, unless the memory is at most twice their size.
    var memory: Int { bytes.usedMemory }

    mutating func append(_ new: UnsafeRawBufferPointer) {
        // Amortized: at most one byte is moved to the front per consumed byte.
        if start > 0 && start * 2 >= bytes.count {
            if bytes.capacity > 2 * (count + new.count) { move() } else { bytes.removeFirst(start) }
            start = 0
        }
        if bytes.isEmpty && bytes.capacity == 0 {
            bytes = [UInt8](new)
        } else {
            bytes.makeRoom(for: new.count)
            bytes.append(contentsOf: new)
        }
    }

    // MARK: In place

    /// The maximum that one system call reads from a large frame, so that other connections get their turn.
    private static var mostReceived: Int { 256 << 10 }

    /// Lets `receive` fill memory after the bytes, with room for a frame's `missing` further bytes, so that the frame
    /// ends up in one piece and can be taken without a copy.
    /// - Parameters:
    ///   - expected: the minimum room to reserve.
    ///   - receive: stores bytes, and returns their number, or a number below 1 if none.
    mutating func receive(
        _ missing: Int, expecting expected: Int, _ receive: (UnsafeMutableRawBufferPointer) -> Int
    ) -> Int {
        let wanted = max([UInt8].room(for: missing, behind: count), expected)
        if start > 0 || bytes.capacity - bytes.count < min(wanted, 16_384) { move(reserving: wanted) }
        let room = min(bytes.capacity - bytes.count, missing, Self.mostReceived)
        var result = 0
        bytes.append(atMost: room) { place in
            result = receive(place)
            return max(result, 0)
        }
        if bytes.isEmpty { bytes = [] }
        return result
    }

    private mutating func move(reserving room: Int = 0) {
        var moved: [UInt8] = []
        moved.reserveCapacity(count + room)
        bytes.withUnsafeBytes { moved.append(contentsOf: $0[start...]) }
        bytes = moved
        start = 0
    }

    /// Appends a whole array, without a copy if the buffer is empty.
    mutating func append(_ new: [UInt8]) {
        if bytes.isEmpty { bytes = new } else { new.withUnsafeBytes { append($0) } }
    }

    /// Moves the bytes to less memory if they and the `missing` bytes need less than a quarter of it: the peer may have
    /// sent a large frame and then the beginning of a small one.
    mutating func shrink(awaiting missing: Int) {
        guard bytes.capacity > Self.leastShrunk else { return }
        if (count + [UInt8].room(for: missing, behind: count)) * 4 < bytes.capacity { move() }
    }

    /// Memory up to this size is kept for the next small read.
    private static var leastShrunk: Int { 4096 }

    /// Takes the first `count` bytes, which must exist.
    mutating func take(_ count: Int) -> [UInt8] {
        var taken: [UInt8] = []
        if start == 0 && count == bytes.count {
            swap(&taken, &bytes)
        } else {
            // An array made from a slice would retain the whole array, and copy more slowly.
            taken = bytes.withUnsafeBytes { [UInt8](UnsafeRawBufferPointer(rebasing: $0[start..<start + count])) }
        }
        drop(count)
        return taken
    }

    /// Drops the first `count` bytes. The memory is released with the last byte, so an idle connection holds none.
    mutating func drop(_ count: Int) {
        start += count
        guard start >= bytes.count else { return }
        bytes = []
        start = 0
    }

    /// Lends all bytes to `body`, and drops as many as it returns. User code may close the connection, which drops the
    /// bytes. So the array is retained during the call, and at most the remaining bytes are dropped.
    /// - Parameter callsUser: true if `body` may call user code, so that the array must be retained.
    @inline(__always)
    mutating func consume(callsUser: Bool, _ body: (UnsafeRawBufferPointer) throws -> Int) rethrows {
        if !callsUser {
            return drop(try bytes.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0[self.start...])) })
        }
        let (bytes, start) = (Self.retaining(bytes), start)
        let consumed = try bytes.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0[start...])) }
        if consumed > 0 { drop(min(consumed, count)) }
    }

    /// Lends all bytes, and their array, to `body`. The array is retained, because `body` calls user
    /// code.
    @inline(__always)
    func lend<Result>(_ body: (UnsafeRawBufferPointer, UnsafePointer<[UInt8]>) throws -> Result) rethrows -> Result {
        let (bytes, start) = (Self.retaining(bytes), start)
        return try withUnsafePointer(to: bytes) { owner in
            try bytes.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0[start...]), owner) }
        }
    }

    /// Returns the array, retained. In release builds a plain copy has none, because the optimizer
    /// assumes that the property does not change during its access. It must not look into this function.
    @inline(never) @_optimize(none)
    private static func retaining(_ bytes: [UInt8]) -> [UInt8] { bytes }

    /// - Parameter address: a position in a lent array that is still retained.
    func begins(at address: UnsafeRawPointer) -> Bool {
        !bytes.isEmpty && bytes.withUnsafeBytes { $0.baseAddress! + start == address }
    }
}

extension [UInt8] {
    /// Returns the room to reserve for a frame's `missing` bytes after its first `count`: at most fifteen times
    /// `count`, so a frame of up to a megabyte is moved at most once. The system assigns no page to the room before it
    /// is written.
    fileprivate static func room(for missing: Int, behind count: Int) -> Int {
        Swift.min(missing, Swift.max(65_536, 15 * count))
    }

    /// The number of bytes of capacity that may have been written.
    package var usedMemory: Int { Swift.min(capacity, Swift.max(2 * count, 4096)) }

    /// Makes room for `count` further bytes from a peer and for later ones, so that each byte is moved at most a few
    /// times.
    /// - Parameter missing: the number of bytes to come, including these; `nil` if unknown.
    package mutating func makeRoom(for count: Int, of missing: Int? = nil) {
        let needed = self.count + count
        if needed <= capacity { return }
        // Often no bytes follow the first ones.
        guard let missing else { return isEmpty ? () : reserveCapacity(needed + needed / 2) }
        reserveCapacity(self.count + Swift.max(count, Self.room(for: missing, behind: needed)))
    }
}
