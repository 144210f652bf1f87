import Synchronization

/// How many waiters have been withdrawn from a core's list and are still in it, as tombstones.
///
/// The list is swept when they outnumber the other nodes, so that the cost of a withdrawal does not depend on the length of the
/// list. One word: the number of tombstones in the low 24 bits, and above them the power of two that, times 16, is the number at
/// which they are removed.
struct Withdrawals: ~Copyable {
    enum Sweep {
        case notDue, due
        /// Due since this withdrawal: it is the one to request a sweep of another thread.
        case justDue
    }

    private let word = Atomic<UInt32>(0)

    /// Counts one more.
    func add() -> Sweep {
        let word = word.add(1, ordering: .relaxed).newValue
        let (count, limit) = (word & 0xFF_FFFF, 16 << (word >> 24))
        return count < limit ? .notDue : count == limit ? .justDue : .due
    }

    /// The list has been swept. It is swept again after as many withdrawals as there are nodes left, and after 16 at least.
    func reset(nodesLeft left: Int) {
        let power = max(0, Int.bitWidth - (left >> 4).leadingZeroBitCount)
        word.store(UInt32(min(power, 19)) << 24, ordering: .relaxed)
    }

    /// Makes it that of a new core.
    @inline(__always)
    func clear() { word.store(0, ordering: .relaxed) }
}
