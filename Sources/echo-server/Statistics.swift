import CLinux
import Reactor
import Synchronization

/// The counters of one worker, or the sum of all.
struct Statistics {
    /// Open connections, and connections since the start.
    private(set) var open = 0
    private(set) var connections = 0
    /// Connections that ended with an error, such as a reset or time-out.
    var failures = 0
    /// Bytes received and sent back.
    var bytes = 0

    mutating func begin() {
        open += 1
        connections += 1
    }

    mutating func end() { open -= 1 }

    static func + (one: Statistics, other: Statistics) -> Statistics {
        var sum = one
        sum.open += other.open
        sum.connections += other.connections
        sum.failures += other.failures
        sum.bytes += other.bytes
        return sum
    }
}

/// The number of open connections on all loops, and its peak. (The sum of the loops' peaks would be higher.)
final class OpenCount: Sendable {
    private let open = Atomic(0)
    private let most = Atomic(0)
    /// The most connections that were open at once since the last `trim`, including those open at that moment.
    private let mostSinceTrim = Atomic(0)
    private let trim: @Sendable () -> Void

    init(trim: @escaping @Sendable () -> Void = { clinux_return_freed_memory() }) { self.trim = trim }

    var peak: Int { most.load(ordering: .relaxed) }

    func begin() {
        let count = open.add(1, ordering: .relaxed).newValue
        most.max(count, ordering: .relaxed)
        mostSinceTrim.max(count, ordering: .relaxed)
    }

    /// Returns freed memory to the kernel when half of the connections have ended.
    ///
    /// For a client that does not read, the server keeps a chunk of 64 KiB. By itself, glibc returns only the heap's
    /// top, above the remaining connections. The call blocks the loop: 80 ms for 1,500 chunks on a busy machine, under
    /// 1 ms with nothing to return. Another thread would hold the allocator's lock as long. So the call is made only
    /// when the number has halved. Fewer connections than `fewToTrim` keep no more memory than the server keeps anyway.
    /// See malloc_trim(3).
    func end() {
        let count = open.subtract(1, ordering: .relaxed).newValue
        let before = mostSinceTrim.load(ordering: .relaxed)
        guard before >= Self.fewToTrim, count <= before / 2 else { return }
        // Only one of several concurrent threads continues.
        guard mostSinceTrim.compareExchange(expected: before, desired: count, ordering: .relaxed).exchanged else {
            return
        }
        trim()
    }

    static let fewToTrim = 256
}

/// The figures of server and loops at one moment.
struct Report: Sendable {
    let statistics: Statistics
    let peak: Int
    /// The loops by thread name, the main loop first.
    let loops: [(name: String, metrics: LoopMetrics)]

    func line(_ title: String) -> String {
        let turns = loops.reduce(0) { $0 + $1.metrics.turns }
        let longest = loops.compactMap(\.metrics.longestTurn).max() ?? .zero
        return """
            \(title): \(statistics.open) open, \(statistics.connections) connections (peak \(peak), \
            \(statistics.failures) failed), \(statistics.bytes) bytes, \(turns) turns, \
            longest turn \(Int(longest / .microseconds(1))) us
            """
    }
}
