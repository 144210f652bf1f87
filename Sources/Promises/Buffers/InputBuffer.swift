import Glibc

/// Bytes of a stream that were read, but not returned to a caller yet.
struct InputBuffer {
    private var bytes: [UInt8] = []
    // The index of the first byte that has not been taken.
    private var start = 0
    // The delimiter that is searched does not begin before this position, counted from `start`.
    private var searched = 0

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
            taken = Array(bytes[start..<start + count])
        }
        drop(count)
        return taken
    }

    /// Drops the first `count` bytes. The memory is released with the last byte: an idle connection holds none.
    mutating func drop(_ count: Int) {
        searched = 0
        start += count
        guard start >= bytes.count else { return }
        bytes = []
        start = 0
    }

    subscript(index: Int) -> UInt8 { bytes[start + index] }

    /// Calls `body` with the first `count` bytes.
    func with<Result>(first count: Int, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        bytes.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[start..<start + count])) }
    }

    /// Prepares the search for another delimiter.
    mutating func beginSearch() { searched = 0 }

    /// The position at which `delimiter` begins. Bytes that were searched in vain are not searched again.
    mutating func position(of delimiter: [UInt8]) -> Int? {
        let found = with(first: count) { bytes in
            delimiter.withUnsafeBytes { Self.position(of: $0, in: bytes, from: searched) }
        }
        searched = found ?? max(searched, count - delimiter.count + 1)
        return found
    }

    private static func position(
        of delimiter: UnsafeRawBufferPointer, in bytes: UnsafeRawBufferPointer, from start: Int
    ) -> Int? {
        var place = start
        // The last position at which it could begin.
        let last = bytes.count - delimiter.count
        while place <= last {
            guard let hit = memchr(bytes.baseAddress! + place, CInt(delimiter[0]), last - place + 1) else { return nil }
            place = UnsafeRawPointer(hit) - bytes.baseAddress!
            if memcmp(hit, delimiter.baseAddress!, delimiter.count) == 0 { return place }
            place += 1
        }
        return nil
    }
}
