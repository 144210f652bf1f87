import Synchronization

// The small fields of a core, grouped by writer: nobody, the thread of its loop, any thread. `PromiseCore` has one word
// per group.

// MARK: Nobody

/// The constant properties of a node.
@usableFromInline
package struct CoreRole: OptionSet {
    @usableFromInline package let rawValue: UInt16
    @usableFromInline package init(rawValue: UInt16) { self.rawValue = rawValue }

    /// Although the node belongs to a loop, its operation runs inline if the source settles on that loop's thread.
    @usableFromInline static var inlineAtHome: CoreRole { CoreRole(rawValue: 1 << 0) }
    /// The node does not mark its source's rejection as handled.
    static var leavesUnhandled: CoreRole { CoreRole(rawValue: 1 << 1) }
    /// The node is no reason to keep its source's producer working: a `WatchingCore`, or the waiter of `whenSettled`.
    static var keepsNoWorkAlive: CoreRole { CoreRole(rawValue: 1 << 2) }
    /// The node belongs to a `hang`. It runs nothing, so its place in the order does not matter.
    static var onlyWaking: CoreRole { CoreRole(rawValue: 1 << 3) }
    /// The loop does not count a node with one of these roles among its waiting handlers.
    static var uncounted: CoreRole { [.keepsNoWorkAlive, .onlyWaking] }
    /// The fast path of settling excludes nodes with one of these roles, because it queues handlers and marks a
    /// rejection as handled.
    static var slowlyNotified: CoreRole { [.inlineAtHome, .leavesUnhandled] }
    /// Any thread that has claimed the core may settle it, through a resolver or in a dispatcher's job.
    @usableFromInline static var externallySettled: CoreRole { CoreRole(rawValue: 1 << 4) }
    /// The operation observes the source's outcome: a later cancellation does not replace the outcome.
    @usableFromInline package static var observes: CoreRole { CoreRole(rawValue: 1 << 5) }
    /// The operation holds a place, like the reader of a connection, that others may take after a cancellation. So a
    /// cancellation drops it, although the core still waits for its source.
    @usableFromInline package static var isDroppedWhenCancelled: CoreRole { CoreRole(rawValue: 1 << 6) }
    /// The node is a clean-up of a resolver's promise. A cancellation rejects the promise only after the clean-up.
    static var cleansUp: CoreRole { CoreRole(rawValue: 1 << 7) }
    /// The node stops the work of a resolver's promise. If the promise has clean-ups, the node is notified with them.
    static var stopsWork: CoreRole { CoreRole(rawValue: 1 << 8) }
    /// The node waits for a clean-up in progress. A cancellation does not climb to the source, and rejects the node
    /// when the source has settled.
    @usableFromInline static var shielding: CoreRole { CoreRole(rawValue: 1 << 9) }
    /// A cancellation drops the operation of a node with one of these roles.
    static var droppedByCancellation: CoreRole { [.isDroppedWhenCancelled, .shielding] }
    /// A timer, or a peer that goes away, may cancel the node before its source settles.
    @usableFromInline package static var hasDeadline: CoreRole { CoreRole(rawValue: 1 << 10) }
    /// Dropping the operation notifies the combinator or the task that waits for the node. So the operation is always
    /// dropped at once, and a cancellation withdraws the node instead of running it.
    static var isNotifiedOfDrop: CoreRole { CoreRole(rawValue: 1 << 11) }
}

// MARK: The thread of the core's loop

/// The progress of a node. `PromiseCore.marks` has room for five marks.
@usableFromInline
struct CoreMarks: OptionSet {
    @usableFromInline let rawValue: UInt8
    @inlinable init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The payload holds the node's next step, set by `continueBy`: to adopt an outcome, or to be rejected.
    static var hasNextStep: CoreMarks { CoreMarks(rawValue: 1 << 0) }
    /// A cancellation will reject the node, whatever its source's outcome, in the next step or when the work has ended.
    static var willBeRejected: CoreMarks { CoreMarks(rawValue: 1 << 1) }
    /// The loop counts the node among its waiting handlers.
    static var countsAsWaiting: CoreMarks { CoreMarks(rawValue: 1 << 2) }
    /// The core, or a core linked to it, has had a next step. `adoptionLeads` can find only such cores.
    static var hasHadNextStep: CoreMarks { CoreMarks(rawValue: 1 << 3) }
    /// The node has been cancelled; the mark stays. The first cancellation decides the error, if a cancellation rejects
    /// the node. A series begins no further round. (Externally settled promises record this themselves.)
    static var isCancelled: CoreMarks { CoreMarks(rawValue: 1 << 4) }
}

// MARK: Any thread

/// The state of a core that several threads may change, in one word. It tells nothing about the rest of the core, so
/// every access is relaxed; `state` orders the threads' accesses to a core.
///
///     bits 0 … 4     the annotations
///     bits 8 … 31    the count of withdrawals, signed
struct SharedWord: ~Copyable {
    private let word = Atomic<UInt32>(0)

    /// Resets it for a new core. The caller has the only reference.
    @inline(__always)
    func clear() { word.store(0, ordering: .relaxed) }

    // MARK: Annotations

    private static var annotationsMask: UInt32 { 31 }

    /// A core with any of these is never reused. Any thread with a reference may add one, and another thread may
    /// release the core.
    var annotations: CoreAnnotations {
        @inline(__always) get {
            CoreAnnotations(rawValue: UInt8(truncatingIfNeeded: word.load(ordering: .relaxed) & Self.annotationsMask))
        }
    }

    func annotate(_ annotation: CoreAnnotations) { word.bitwiseOr(UInt32(annotation.rawValue), ordering: .relaxed) }

    // MARK: Withdrawals

    // The number of waiters withdrawn since the last sweep; the list has no more tombstones than that. When the
    // withdrawn waiters outnumber the other nodes, the list is swept, so that a withdrawal costs the same however long
    // the list is. The count begins at zero or below, and a sweep is due at 16. The count wraps around.

    private static var countShift: UInt32 { 8 }
    private static var countWhenDue: Int32 { 16 }
    /// The most withdrawals between sweeps, also for longer lists, where each withdrawal then costs a few visits.
    private static var mostBetweenSweeps: Int { 1 << 22 }

    /// Counts a withdrawn waiter, on any thread.
    /// - Returns: the count minus 16: zero for the withdrawal that makes a sweep due.
    func countWithdrawal() -> Int32 {
        let word = word.wrappingAdd(1 << Self.countShift, ordering: .relaxed).newValue
        return Int32(bitPattern: word) >> Int32(Self.countShift) - Self.countWhenDue
    }

    /// Restarts the count after a sweep. The next sweep is due after as many withdrawals as nodes are left, but at
    /// least 16.
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

/// Marks set by other parts of the library that refer to a core.
struct CoreAnnotations: OptionSet {
    let rawValue: UInt8

    /// `TraceRegistry` has an entry for the core. Set under the registry's lock.
    static var isRecorded: CoreAnnotations { CoreAnnotations(rawValue: 1 << 0) }
    /// The core's thread may never drive its loop, so the call site is noted; see `EventLoop.note`.
    static var isNoted: CoreAnnotations { CoreAnnotations(rawValue: 1 << 1) }
    /// A rejected `when` no longer waits for the core. From then on, an unhandled rejection is not reported
    /// (`destroyContents`). The core continues without a listener, but is cancelled when a later listener leaves.
    static var isDetached: CoreAnnotations { CoreAnnotations(rawValue: 1 << 2) }
    /// After handing the core out once, its producer may hand it out again, or attach a waiter to it.
    static var isHandedOutAgain: CoreAnnotations { CoreAnnotations(rawValue: 1 << 3) }
    /// A cancellation decides the externally settled core's outcome: it rejects the core now, or after its clean-ups or
    /// work. Cores of `cancelled(with:)` have this mark too.
    static var isDecidedByCancellation: CoreAnnotations { CoreAnnotations(rawValue: 1 << 4) }
    /// A core with one of these is never linked.
    static var ofUnlinked: CoreAnnotations { [.isDetached, .isHandedOutAgain] }
}
