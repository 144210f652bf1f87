import Synchronization

/// What several threads may change in a core, in one word. It tells nothing about the rest of the core, so every access is
/// relaxed: `state` orders what threads do with a core.
///
///     bits 0 … 3     the annotations
///     bits 8 … 31    the count of withdrawals, signed
struct SharedWord: ~Copyable {
    private let word = Atomic<UInt32>(0)

    /// Makes it that of a new core, for a caller with the only reference.
    @inline(__always)
    func clear() { word.store(0, ordering: .relaxed) }

    // MARK: Annotations

    private static var annotationsMask: UInt32 { 0xF }

    /// What other parts of the library know the core by. No loop uses a core with any of them again. Any thread that has a
    /// reference may add one, and another thread may release the core.
    var annotations: CoreAnnotations {
        @inline(__always) get {
            CoreAnnotations(rawValue: UInt8(truncatingIfNeeded: word.load(ordering: .relaxed) & Self.annotationsMask))
        }
    }

    func annotate(_ annotation: CoreAnnotations) { word.bitwiseOr(UInt32(annotation.rawValue), ordering: .relaxed) }

    // MARK: Withdrawals

    // How many waiters have been withdrawn from the core's list and are still in it, as tombstones. The list is swept when they
    // outnumber the other nodes, so that the cost of a withdrawal does not depend on the length of the list. The count begins
    // at zero, or below, and a sweep is due at 16. Beyond its largest number it continues with the smallest.

    enum Sweep {
        case notDue, due
        /// Due since this withdrawal: it is the one to request a sweep of another thread.
        case justDue
    }

    private static var countShift: UInt32 { 8 }
    private static var countWhenDue: Int32 { 16 }
    /// A longer list is swept after so many withdrawals as well: it then costs each of them a few visits.
    private static var mostBetweenSweeps: Int { 1 << 22 }

    /// Counts a waiter that was withdrawn, by any thread.
    func countWithdrawal() -> Sweep {
        let word = word.wrappingAdd(1 << Self.countShift, ordering: .relaxed).newValue
        let count = Int32(bitPattern: word) >> Int32(Self.countShift)
        return count < Self.countWhenDue ? .notDue : count == Self.countWhenDue ? .justDue : .due
    }

    /// The list has been swept. It is swept again after as many withdrawals as there are nodes left, and after 16 at least.
    func restartCount(nodesLeft left: Int) {
        let count = Self.countWhenDue - Int32(max(Int(Self.countWhenDue), min(left, Self.mostBetweenSweeps)))
        let bits = UInt32(bitPattern: count << Int32(Self.countShift))
        let flags: UInt32 = (1 << Self.countShift) - 1
        var seen = word.load(ordering: .relaxed)
        while true {
            let (done, now) = word.weakCompareExchange(
                expected: seen, desired: bits | seen & flags, ordering: .relaxed)
            if done { return }
            seen = now
        }
    }
}
