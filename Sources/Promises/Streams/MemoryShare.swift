import Reactor

/// The memory that one connection holds for its peer's bytes, and for writes that the kernel has not taken, as a budget
/// counts it. Accessed on the loop's thread.
final class MemoryShare {
    /// `nil` once the connection is closed.
    private(set) var budget: MemoryBudget?
    /// The budget's count for this connection.
    private var noted = 0
    /// The memory of the decoder of the last read, beside the buffered input.
    var inDecoder = 0
    /// Memory kept elsewhere: see `KeptBytes`.
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

/// Bytes of a peer that a part of the library keeps beyond the read that returned them, such as the body of a message
/// that is being gathered. They count as memory of the connection until this object is released.
package final class KeptBytes {
    private let share: MemoryShare
    /// Their number: by the capacity of their storage.
    package var count: Int { didSet { share.keep(count - oldValue) } }

    /// `nil` if the connection has no share in a budget.
    package init?(_ count: Int, of connection: Connection) {
        guard let share = connection.cold?.memory else { return nil }
        (self.share, self.count) = (share, count)
        share.keep(count)
    }

    deinit { share.keep(-count) }
}

extension Connection {
    /// The memory of unconsumed input, of data that a decoder and a filter have made from it, and of writes that the
    /// kernel has not taken.
    var heldMemory: Int {
        guard let cold else { return writer.memory }
        let parts = cold.memory.map { $0.inDecoder + $0.kept } ?? 0
        return cold.input.memory + writer.memory + (cold.layer?.heldMemory ?? 0) + parts
    }

    /// The memory of the connection may have changed.
    @inline(never)
    func noteHeldMemory() {
        if let share = cold?.memory { noteHeldMemory(in: share) }
    }

    /// As `noteHeldMemory`, for a pending read.
    /// - Parameters:
    ///   - count: the bytes that its decoder keeps.
    ///   - missing: the minimum number of bytes that it waits for.
    @inline(never)
    func noteHeldMemory(inDecoder count: Int, awaiting missing: Int = 1) {
        guard let cold else { return }
        if !cold.input.isEmpty { cold.input.shrink(awaiting: missing) }
        guard let share = cold.memory else { return }
        share.inDecoder = count
        noteHeldMemory(in: share)
    }

    /// The budget counts memory that several connections hold only once.
    private func noteHeldMemory(in share: MemoryShare) { share.note(heldMemory - (writer.queue?.sharedMemory ?? 0)) }
}
