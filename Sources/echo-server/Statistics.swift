import Reactor

/// What the server counts.
struct Statistics {
    /// Connections that are open, those since the start, and how many there were at most at a time.
    private(set) var open = 0
    private(set) var connections = 0
    private(set) var peak = 0
    /// Connections that ended with an error: a reset, a time-out.
    private(set) var failures = 0
    /// Bytes received; all of them are sent back.
    var bytes = 0

    mutating func begin() {
        open += 1
        connections += 1
        peak = max(peak, open)
    }

    mutating func end(_ received: Int) {
        open -= 1
        bytes += received
    }

    mutating func noteFailure() { failures += 1 }

    /// One line about the server as it stands.
    func line(_ title: String, _ metrics: EventLoop.Metrics) -> String {
        """
        \(title): \(open) open, \(connections) connections (peak \(peak), \(failures) failed), \(bytes) bytes, \
        \(metrics.turns) turns, longest turn \(metrics.longestTurn.microseconds) us
        """
    }
}

extension Duration {
    fileprivate var microseconds: Int64 { components.seconds * 1_000_000 + components.attoseconds / 1_000_000_000_000 }
}
