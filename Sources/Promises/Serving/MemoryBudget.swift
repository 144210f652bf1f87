import Glibc
import Reactor

/// What the connections of a listener hold on one loop, and the limit of it; see `ServeOptions.memoryLimit`. Accessed only on
/// the loop's thread.
///
/// The sum is noted where a connection begins to hold more, and where it goes on waiting. It is exact when it matters: a
/// connection is ended only after all have been looked at.
final class MemoryBudget {
    private let limit: Int
    private let loop: EventLoop
    private let counters: DrainCounters
    private let connections: () -> [Connection]
    /// What the connections hold by their notes.
    private var held = 0
    private var hasJob = false

    /// - Parameter connections: those that share the budget, at each call.
    init(
        _ limit: Int, on loop: EventLoop, _ counters: DrainCounters, of connections: @escaping () -> [Connection]
    ) {
        self.limit = limit
        self.loop = loop
        self.counters = counters
        self.connections = connections
    }

    /// A connection holds `change` more bytes than it did.
    func note(_ change: Int) {
        held += change
        // Only growth: a connection that goes with its loop leaves no job behind.
        if change <= 0 || held <= limit || hasJob { return }
        hasJob = true
        // Not inside the read or the write of the connection.
        loop.enqueueAtEndOfTurn(ClosureJob { [self] in enforce() })
    }

    /// Ends the connections that hold the most, if all together hold too much: until they hold seven eighths of the limit,
    /// since the next look at all connections should not be due at once.
    private func enforce() {
        defer { hasJob = false }
        // The turn may have handled what it had received.
        if held <= limit { return }
        let connections = connections()
        for connection in connections { connection.noteHeldMemory() }
        let total = held
        if total <= limit { return }
        for connection in connections.sorted(by: { $0.heldMemory > $1.heldMemory }) {
            if held <= limit / 8 * 7 { return }
            // Closed since, by a handler of the one before.
            guard connection.lifecycle.hasDescriptor else { continue }
            let detail =
                "the connections of a listener hold \(total) bytes, and this one \(connection.heldMemory); the limit is \(limit)"
            counters.countEvicted()
            let call = connection.queuedBytes > 0 ? connection.writeCall : connection.readCall
            connection.abort(because: SystemError(call, ENOBUFS, detail: detail))
        }
    }
}
