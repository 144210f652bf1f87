import Synchronization

// What is small in a core, by who writes it: nobody, the thread of its loop, any thread. `PromiseCore` has a word for each.

// MARK: Nobody

/// The constant properties of a node.
@usableFromInline
struct CoreRole: OptionSet {
    @usableFromInline let rawValue: UInt8
    @usableFromInline init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Although the node belongs to a loop, its operation runs inline if the source is settled on that loop's
    /// thread.
    @usableFromInline static var inlineAtHome: CoreRole { CoreRole(rawValue: 1 << 0) }
    /// The node does not make the rejection of its source a handled one.
    static var leavesUnhandled: CoreRole { CoreRole(rawValue: 1 << 1) }
    /// The node is no reason to keep its source's producer working: a `WatchingCore`, or what waits for a cancelled promise.
    static var keepsNoWorkAlive: CoreRole { CoreRole(rawValue: 1 << 2) }
    /// The node belongs to a `hang`. It runs nothing, and therefore has no place in the order of the others.
    static var onlyWaking: CoreRole { CoreRole(rawValue: 1 << 3) }
    /// The loop does not count a node with one of these roles among its waiting handlers.
    static var uncounted: CoreRole { [.keepsNoWorkAlive, .onlyWaking] }
    /// A node with one of these roles is excluded from the short way of a settlement, which runs handlers later and makes a
    /// rejection a handled one.
    static var slowlyNotified: CoreRole { [.inlineAtHome, .leavesUnhandled] }
    /// Any thread may settle the core, once it has claimed it: a resolver, or a job of a dispatcher.
    @usableFromInline static var externallySettled: CoreRole { CoreRole(rawValue: 1 << 4) }
    /// The operation cleans up: a cancellation does not destroy it but runs it, with the cancellation as its
    /// source's outcome.
    @usableFromInline static var runsWhenCancelled: CoreRole { CoreRole(rawValue: 1 << 5) }
    /// A cancellation of the node does not continue to its source, and rejects the node when the source has settled.
    @usableFromInline static var shielding: CoreRole { CoreRole(rawValue: 1 << 6) }
    /// A timer cancels the node if its source takes too long.
    @usableFromInline static var hasDeadline: CoreRole { CoreRole(rawValue: 1 << 7) }
}

// MARK: The thread of the core's loop

/// What only the thread of a core's loop reads and writes, in one word: marks, and a number.
struct HomeWord {
    private var bits: UInt32 = 0

    private static var marksMask: UInt32 { 0x1F }
    private static var numberShift: UInt32 { 5 }

    /// What the core is about to do.
    var marks: CoreMarks {
        @inline(__always) get { CoreMarks(rawValue: UInt8(truncatingIfNeeded: bits & Self.marksMask)) }
        @inline(__always) set { bits = bits & ~Self.marksMask | UInt32(newValue.rawValue) }
    }

    /// The number of the waiter among the `OutsideWaiters` of its loop, or zero. It has 27 bits, as is known there.
    var outsideNumber: UInt32 {
        @inline(__always) get { bits >> Self.numberShift }
        @inline(__always) set { bits = bits & Self.marksMask | newValue << Self.numberShift }
    }
}

/// What a node is about to do.
@usableFromInline
struct CoreMarks: OptionSet {
    @usableFromInline let rawValue: UInt8
    @inlinable init(rawValue: UInt8) { self.rawValue = rawValue }

    /// It, or a core that is linked to it, waits to adopt another core's outcome, without a link.
    static var isAdopting: CoreMarks { CoreMarks(rawValue: 1 << 0) }
    /// A cancellation has come to it: it settles when its source has, or its operation has ended, and another cancellation
    /// has no effect.
    @usableFromInline static var isEndingCancelled: CoreMarks { CoreMarks(rawValue: 1 << 1) }
    /// The payload refers to the producer that will settle it; see `beginProduction`.
    static var hasHeldProducer: CoreMarks { CoreMarks(rawValue: 1 << 2) }
    /// The loop counts it among its waiting handlers.
    static var countsAsWaiting: CoreMarks { CoreMarks(rawValue: 1 << 3) }
}

// MARK: Any thread

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

/// What other parts of the library know a core by.
struct CoreAnnotations: OptionSet {
    let rawValue: UInt8

    /// `TraceRegistry` has an entry for it. Set under the lock there.
    static var isRecorded: CoreAnnotations { CoreAnnotations(rawValue: 1 << 0) }
    /// Its thread may never drive its loop, so the call site is noted; see `EventLoop.note`.
    static var isNoted: CoreAnnotations { CoreAnnotations(rawValue: 1 << 1) }
    /// A weak reference leads to it; see `WeakCore`.
    static var isHeldWeakly: CoreAnnotations { CoreAnnotations(rawValue: 1 << 2) }
    /// A combinator that has settled no longer waits for it: it continues, and if it is rejected without a handler, that is
    /// not reported.
    static var isLetGo: CoreAnnotations { CoreAnnotations(rawValue: 1 << 3) }
}
