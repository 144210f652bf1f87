/// The bytes of a connection that the kernel has not taken yet, and the promises of the writes that they belong to.
///
/// Small writes are gathered in one block, so that a thousand of them leave with one system call; a large one keeps
/// its own array and is not copied. A connection has a queue only while something waits, which most never do.
final class WriteQueue {
    private var segments: [[UInt8]] = []
    private var first = 0
    // How much of the first segment is gone.
    private var offset = 0
    private var marks: [Mark] = []
    private var firstMark = 0

    /// A write: the position at which it ends, and how many of its bytes were queued.
    private struct Mark {
        var end: Int
        let count: Int
        /// The kernel had taken a part of it before.
        let isBegun: Bool
        let promise: Core
    }

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
        marks.append(Mark(end: accepted, count: count, isBegun: start > 0, promise: promise))
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
        dropFinishedSegment()
    }

    private func dropFinishedSegment() {
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

    /// Takes a write back. False if the kernel has some of its bytes: the stream cannot go on without the rest.
    func withdraw(_ promise: Core) -> Bool {
        guard let index = marks[firstMark...].firstIndex(where: { $0.promise === promise }) else { return false }
        let mark = marks[index]
        let start = mark.end - mark.count
        guard !mark.isBegun && start >= taken else { return false }
        cut(from: start - taken + offset, mark.count)
        marks.remove(at: index)
        for later in index..<marks.count { marks[later].end -= mark.count }
        accepted -= mark.count
        return true
    }

    /// Takes `count` bytes out, the first of which stands `start` behind the beginning of the first segment.
    private func cut(from start: Int, _ count: Int) {
        var index = first
        var start = start
        var left = count
        while left > 0 {
            let end = min(segments[index].count, start + left)
            if start < end {
                segments[index].removeSubrange(start..<end)
                left -= end - start
            }
            // The first stays, for what of it has gone.
            if segments[index].isEmpty && index > first {
                segments.remove(at: index)
                start = 0
            } else {
                start = max(0, start - segments[index].count)
                index += 1
            }
        }
        dropFinishedSegment()
    }
}
