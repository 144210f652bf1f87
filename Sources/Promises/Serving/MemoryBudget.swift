import Glibc
import Reactor

/// What the connections of a listener hold on one loop, and the limit of it; see `Listener.memoryLimit`. Accessed only on
/// the loop's thread.
///
/// The sum is noted where a connection begins to hold more, and where it goes on waiting. It is exact when it matters: a
/// connection is ended only after all have been looked at.
final class MemoryBudget {
    private let limit: Int
    private let loop: EventLoop
    private let counters: DrainCounters
    private weak var tracker: ConnectionTracker?
    /// What the connections hold by their notes.
    private var held = 0
    private var hasJob = false

    init(_ limit: Int, of tracker: ConnectionTracker, on loop: EventLoop, _ counters: DrainCounters) {
        self.limit = limit
        self.loop = loop
        self.tracker = tracker
        self.counters = counters
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
        guard held > limit, let tracker else { return }
        let connections = tracker.running.all.map(\.connection)
        for connection in connections { connection.noteHeldMemory() }
        if held <= limit { return }
        for connection in connections.sorted(by: { $0.heldMemory > $1.heldMemory }) {
            if held <= limit / 8 * 7 { return }
            // Closed since, by a handler of the one before.
            guard connection.cold?.budget === self else { continue }
            let detail =
                "the connections of a listener hold \(held) bytes, and this one \(connection.heldMemory); the limit is \(limit)"
            counters.countEvicted()
            connection.abort(because: SystemError(connection.writeCall, ENOBUFS, detail: detail))
        }
    }
}

extension Connection {
    /// Bytes that were received and that no read has consumed, and the memory of writes that the kernel has not taken.
    var heldMemory: Int {
        let queued = writer.isGathering ? queueLength : writer.queue?.weight ?? 0
        return bufferedByteCount + queued + (cold?.filter?.deferredWeight ?? 0)
    }

    /// Corrects the sum of the budget, if this connection belongs to one.
    @inline(never)
    func noteHeldMemory() {
        guard let cold, let budget = cold.budget else { return }
        let change = heldMemory - cold.notedMemory
        if change == 0 { return }
        cold.notedMemory += change
        budget.note(change)
    }
}
