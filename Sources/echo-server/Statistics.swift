import Reactor
import Synchronization

/// What a worker counts, or all of them.
struct Statistics {
    /// Connections that are open, and those since the start.
    private(set) var open = 0
    private(set) var connections = 0
    /// Connections that ended with an error: a reset, a time-out.
    private(set) var failures = 0
    /// Bytes received; all of them are sent back.
    var bytes = 0

    mutating func begin() {
        open += 1
        connections += 1
    }

    mutating func end(_ received: Int) {
        open -= 1
        bytes += received
    }

    mutating func noteFailure() { failures += 1 }

    static func + (one: Statistics, other: Statistics) -> Statistics {
        var sum = one
        sum.open += other.open
        sum.connections += other.connections
        sum.failures += other.failures
        sum.bytes += other.bytes
        return sum
    }
}

/// How many connections are open on all loops, and how many there were at most at a time: a sum of what each loop has had at
/// most would be too much.
final class OpenCount: Sendable {
    private let open = Atomic(0)
    private let most = Atomic(0)

    var peak: Int { most.load(ordering: .relaxed) }

    func begin() { most.max(open.add(1, ordering: .relaxed).newValue, ordering: .relaxed) }

    func end() { open.subtract(1, ordering: .relaxed) }
}

/// The server and its loops as they stand.
struct Report: Sendable {
    let statistics: Statistics
    let peak: Int
    /// By the names of their threads, the main loop first.
    let loops: [(name: String, metrics: EventLoop.Metrics)]

    /// One line.
    func line(_ title: String) -> String {
        let turns = loops.reduce(0) { $0 + $1.metrics.turns }
        let longest = loops.map(\.metrics.longestTurn).max() ?? .zero
        return """
            \(title): \(statistics.open) open, \(statistics.connections) connections (peak \(peak), \
            \(statistics.failures) failed), \(statistics.bytes) bytes, \(turns) turns, \
            longest turn \(longest.microseconds) us
            """
    }
}

extension Duration {
    fileprivate var microseconds: Int64 { components.seconds * 1_000_000 + components.attoseconds / 1_000_000_000_000 }
}
