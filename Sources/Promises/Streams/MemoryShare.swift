import Reactor

/// What one connection holds in memory of its peer's bytes, and of writes that the kernel has not taken, as a budget counts it.
/// Accessed on the loop's thread.
final class MemoryShare {
    /// `nil` once the connection is closed.
    private(set) var budget: MemoryBudget?
    /// What the budget counts for this connection.
    private var noted = 0
    /// What the decoder keeps with which the connection was last read, beside the buffered input.
    var inDecoder = 0
    /// What others keep: see `KeptBytes`.
    private(set) var kept = 0

    init(_ budget: MemoryBudget) { self.budget = budget }

    func note(_ held: Int) {
        let change = held - noted
        guard change != 0, let budget else { return }
        noted = held
        budget.note(change)
    }

    fileprivate func keep(_ change: Int) {
        kept += change
        note(noted + change)
    }

    /// The connection is closed.
    func end() { budget.take()?.end(noted) }
}

/// Bytes of a peer that a part of the library keeps beyond the read that has returned them, such as the body of a message that
/// is being gathered. They count as memory of the connection until this is released.
package final class KeptBytes {
    private let share: MemoryShare
    /// How many there are: by the capacity of what holds them.
    package var count: Int { didSet { share.keep(count - oldValue) } }

    /// `nil` if the connection has no part in a budget.
    package init?(_ count: Int, of connection: Connection) {
        guard let share = connection.cold?.memory else { return nil }
        (self.share, self.count) = (share, count)
        share.keep(count)
    }

    deinit { share.keep(-count) }
}

extension Connection {
    /// The memory of received bytes that nothing has consumed, of what a decoder and a filter have made of them, and of writes
    /// that the kernel has not taken.
    var heldMemory: Int {
        guard let cold else { return writer.memory }
        let parts = cold.memory.map { $0.inDecoder + $0.kept } ?? 0
        return cold.input.memory + writer.memory + (cold.layer?.heldMemory ?? 0) + parts
    }

    /// What the connection holds in memory may have changed.
    @inline(never)
    func noteHeldMemory() {
        if let share = cold?.memory { noteHeldMemory(in: share) }
    }

    /// As `noteHeldMemory`, of a read that waits.
    /// - Parameters:
    ///   - count: what its decoder keeps.
    ///   - missing: how many bytes it waits for, at least.
    @inline(never)
    func noteHeldMemory(inDecoder count: Int, awaiting missing: Int = 1) {
        guard let cold else { return }
        if !cold.input.isEmpty { cold.input.shrink(awaiting: missing) }
        guard let share = cold.memory else { return }
        share.inDecoder = count
        noteHeldMemory(in: share)
    }

    /// What several connections may hold is counted by the budget, once for all.
    private func noteHeldMemory(in share: MemoryShare) { share.note(heldMemory - (writer.queue?.sharedMemory ?? 0)) }
}
