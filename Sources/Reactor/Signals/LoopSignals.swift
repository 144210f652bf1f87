import ReactorLibc
import Synchronization

/// A loop's signal watches, and the slot by which the signal handler reaches the loop.
struct LoopSignals {
    private var watches = NumberedList<SignalHandler>()
    private var counts: [CInt: Int] = [:]
    private var referenced = 0
    private(set) var slot: SignalSlot?
    /// The signals unblocked on the loop's thread if it is the library's, otherwise all.
    var taken = UInt64.max

    var handlers: [SignalHandler] { watches.elements }
    var count: Int { watches.count }
    var hasReferenced: Bool { referenced > 0 }

    /// Opens the slot. The epoll descriptor must be open.
    mutating func open(_ poller: inout Poller, _ kernel: CountingSyscalls) throws(SystemError) {
        let fd = CInt(try kernel.eventCreate().orThrow(.eventCreate))
        do throws(SystemError) {
            try poller.add(.signals, fd, kernel)
            slot = try SignalRegistry.open(fd)
        } catch {
            kernel.close(fd)
            throw error
        }
    }

    mutating func close(_ kernel: CountingSyscalls) {
        if let slot = slot.take() { kernel.close(SignalRegistry.close(slot)) }
    }

    func contains(_ id: Int) -> Bool { watches[id] != nil }

    /// Adds a watch. The slot must be open.
    mutating func add(_ handler: SignalHandler) throws(SystemError) -> Int {
        let signal = handler.signal
        if let slot, counts[signal] == nil { try SignalRegistry.subscribe(slot, to: signal) }
        counts[signal, default: 0] += 1
        referenced += 1
        return watches.add(handler)
    }

    /// Returns the removed handler, which the caller must end once the state is consistent.
    mutating func remove(_ id: Int) -> SignalHandler? {
        guard let removed = watches.remove(id) else { return nil }
        if removed.isReferenced { referenced -= 1 }
        let left = counts[removed.signal]! - 1
        counts[removed.signal] = left == 0 ? nil : left
        if let slot, left == 0 {
            unsubscribe(slot, removed.signal)
        } else {
            // The signal may not have been queued for this loop's other watches.
            SignalRegistry.passOn(removed.signal)
        }
        return removed
    }

    mutating func setReferenced(_ id: Int, _ isReferenced: Bool) {
        guard let watch = watches[id], watch.isReferenced != isReferenced else { return }
        watch.isReferenced = isReferenced
        referenced += isReferenced ? 1 : -1
    }

    mutating func removeAll() -> [SignalHandler] {
        if let slot {
            for signal in counts.keys { unsubscribe(slot, signal) }
        }
        counts = [:]
        referenced = 0
        return watches.removeAll()
    }

    private func unsubscribe(_ slot: SignalSlot, _ signal: CInt) {
        guard SignalRegistry.unsubscribe(slot, from: signal) else { return }
        LoopRegistry.wakeSpawned()
        SignalRegistry.raiseUnhandled(signal, onLibraryThread: taken != .max)
    }

    /// Takes the arrived signals, and queues each one's watches in the order of their addition. A queued watch is not
    /// queued again, so each has at most one job.
    func enqueueArrived(into queue: inout JobQueue) {
        guard let slot else { return }
        let passedOn = slot.passedOn.exchange(0, ordering: .acquiring)
        let pending = slot.pending.exchange(0, ordering: .acquiring) | SignalRegistry.unhandled(passedOn)
        if pending == 0 { return }
        for handler in handlers where pending & SignalRegistry.bit(handler.signal) != 0 && !handler.isQueued {
            handler.isQueued = true
            queue.append(.passRetained(handler))
        }
    }
}
