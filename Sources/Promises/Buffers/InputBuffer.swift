import Glibc

/// Bytes of a stream that were read and that nobody has been given yet.
struct InputBuffer {
    private var bytes: [UInt8] = []
    // The first of them that is still there.
    private var start = 0
    // Before this place, counted from `start`, the delimiter that is looked for does not begin.
    private var searched = 0

    var count: Int { bytes.count - start }
    /// With the last byte the array is dropped.
    var isEmpty: Bool { bytes.isEmpty }

    mutating func append(_ new: UnsafeRawBufferPointer) {
        // Each byte is moved to the front once at the most for each that has gone before it.
        if start > 0 && start * 2 >= bytes.count {
            bytes.removeFirst(start)
            start = 0
        }
        bytes.append(contentsOf: new)
    }

    /// Room for what will come, so that it need not move while it grows.
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

    /// Forgets the first `count` bytes. The memory goes with the last of them: an idle connection holds none.
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

    /// The next search is for another delimiter.
    mutating func beginSearch() { searched = 0 }

    /// Where `delimiter` begins. What was searched in vain is not searched again when more has come.
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
        // The last place at which it could begin.
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
