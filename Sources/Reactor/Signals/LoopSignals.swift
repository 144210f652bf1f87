import Glibc
import Synchronization

/// A loop's signals: its watches, and the slot through which the signal handler reaches the loop.
struct LoopSignals {
    private(set) var handlers: [SignalHandler] = []
    private var lastID = 0
    var slot: SignalSlot?

    var hasReferenced: Bool { handlers.contains { $0.isReferenced } }

    func contains(_ id: Int) -> Bool { handlers.contains { $0.id == id } }

    /// The slot must be open.
    mutating func add(
        _ signal: CInt, _ body: @escaping () -> Void, _ origin: CallSite
    ) throws(SystemError) -> Int {
        if let slot, !handlers.contains(where: { $0.signal == signal }) {
            try SignalRegistry.subscribe(slot, to: signal)
        }
        lastID += 1
        handlers.append(SignalHandler(id: lastID, signal: signal, body: body, origin: origin))
        return lastID
    }

    /// Returns the removed handler, for the caller to end when the state is consistent again.
    mutating func remove(_ id: Int) -> SignalHandler? {
        guard let index = handlers.firstIndex(where: { $0.id == id }) else { return nil }
        let removed = handlers.remove(at: index)
        if let slot, !handlers.contains(where: { $0.signal == removed.signal }) {
            SignalRegistry.unsubscribe(slot, from: removed.signal)
        }
        return removed
    }

    func setReferenced(_ id: Int, _ isReferenced: Bool) {
        handlers.first { $0.id == id }?.isReferenced = isReferenced
    }

    /// Takes the signals that have arrived, and queues the watches of each, in the order in which they were made. A
    /// watch that is still queued is not queued twice, so however many signals arrive, a watch has one job at most.
    func enqueueArrived(into queue: inout JobQueue) {
        guard let pending = slot?.pending.exchange(0, ordering: .acquiring), pending != 0 else { return }
        for handler in handlers where pending & SignalRegistry.bit(handler.signal) != 0 && !handler.isQueued {
            handler.isQueued = true
            queue.append(.passRetained(handler))
        }
    }
}
