/// The bytes of a connection that the kernel has not taken yet, and the promises of the writes that they belong to.
///
/// Small writes are gathered in one block, so that a thousand of them leave with one system call; a large one keeps
/// its own array and is not copied. A connection has a queue only while something waits, which most never do.
final class WriteQueue {
    private var segments: [[UInt8]] = []
    private var first = 0
    // How much of the first segment is gone.
    private var offset = 0
    private var marks: [(end: Int, promise: Core)] = []
    private var firstMark = 0
    // Positions in the stream of all that was ever queued: taken by the kernel, and accepted from the user.
    private var taken = 0
    private var accepted = 0

    /// A segment smaller than this is filled up before another is begun.
    private static var gatherSize: Int { 16_384 }

    var count: Int { accepted - taken }
    var isEmpty: Bool { firstMark == marks.count }

    /// Queues `bytes` from `start` on; the core is settled by whoever takes it out again.
    func append(_ bytes: [UInt8], from start: Int, _ promise: Core) {
        let count = bytes.count - start
        if count > 0 {
            if let last = segments.indices.last, last >= first, segments[last].count + count <= Self.gatherSize {
                segments[last].append(contentsOf: bytes[start...])
            } else {
                if segments.isEmpty { offset = start }
                segments.append(segments.isEmpty || start == 0 ? bytes : Array(bytes[start...]))
            }
        }
        accepted += count
        marks.append((accepted, promise))
    }

    /// What to send next; empty if only the promises of empty writes are left.
    func withNext<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result? {
        guard first < segments.count else { return nil }
        return segments[first].withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[offset...])) }
    }

    /// The kernel has taken `count` bytes of what `withNext` showed.
    func advance(_ count: Int) {
        taken += count
        offset += count
        guard first < segments.count, offset == segments[first].count else { return }
        offset = 0
        segments[first] = []
        first += 1
        if first == segments.count {
            segments.removeAll()
            first = 0
        } else if first >= 64, first * 2 > segments.count {
            segments.removeFirst(first)
            first = 0
        }
    }

    /// The promises of the writes whose bytes are all gone.
    func takeFinished() -> [Core] {
        let end = marks[firstMark...].firstIndex { $0.end > taken } ?? marks.count
        let finished = marks[firstMark..<end].map(\.promise)
        firstMark = end
        if firstMark == marks.count {
            marks.removeAll()
            firstMark = 0
        } else if firstMark >= 1024, firstMark * 2 > marks.count {
            marks.removeFirst(firstMark)
            firstMark = 0
        }
        return finished
    }

    /// The promises of the writes that wait.
    var promises: [Core] { marks[firstMark...].map(\.promise) }
}
