import Synchronization

// The small fields of a core, by who writes them: nobody, the thread of its loop, any thread. `PromiseCore` has a word
// for each.

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
    /// A node with one of these roles is excluded from the fast path of settling, which runs handlers later and marks a
    /// rejection as handled.
    static var slowlyNotified: CoreRole { [.inlineAtHome, .leavesUnhandled] }
    /// Any thread that has claimed the core may settle it: a resolver, or a job of a dispatcher.
    @usableFromInline static var externallySettled: CoreRole { CoreRole(rawValue: 1 << 4) }
    /// The operation observes the source's outcome: a later cancellation does not replace that.
    @usableFromInline package static var observes: CoreRole { CoreRole(rawValue: 1 << 5) }
    /// The operation holds a place that others may take when it is cancelled, as the reader of a connection: it is dropped
    /// then, although the core waits for its source.
    @usableFromInline package static var isDroppedWhenCancelled: CoreRole { CoreRole(rawValue: 1 << 6) }
    /// A clean-up of a resolver's promise, which a cancellation rejects only after it.
    static var cleansUp: CoreRole { CoreRole(rawValue: 1 << 7) }
    /// Stops the work of a resolver's promise. If that has clean-ups, it is notified with them.
    static var stopsWork: CoreRole { CoreRole(rawValue: 1 << 8) }
    /// Waits for a clean-up in progress. A cancellation does not continue to its source, and rejects the node when the
    /// source has settled.
    @usableFromInline static var shielding: CoreRole { CoreRole(rawValue: 1 << 9) }
    /// A cancellation drops the operation of a node with one of these roles.
    static var droppedByCancellation: CoreRole { [.isDroppedWhenCancelled, .shielding] }
    /// A timer, or the peer's end, may cancel the node before its source settles.
    @usableFromInline package static var hasDeadline: CoreRole { CoreRole(rawValue: 1 << 10) }
    /// Dropping the operation notifies the combinator or the task that waits for the node. So it is dropped at once, not put
    /// off, and a cancellation withdraws the node in place of running it.
    static var isNotifiedOfDrop: CoreRole { CoreRole(rawValue: 1 << 11) }
}

// MARK: The thread of the core's loop

/// Progress of a node. At most five marks: see `PromiseCore.marks`.
@usableFromInline
struct CoreMarks: OptionSet {
    @usableFromInline let rawValue: UInt8
    @inlinable init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The payload has the next step of the node, set by `continueBy`: to adopt an outcome, or to be rejected.
    static var hasNextStep: CoreMarks { CoreMarks(rawValue: 1 << 0) }
    /// A cancellation will reject the node, whatever its source's outcome: by the next step, or when the work has ended.
    static var willBeRejected: CoreMarks { CoreMarks(rawValue: 1 << 1) }
    /// The loop counts the node among its waiting handlers.
    static var countsAsWaiting: CoreMarks { CoreMarks(rawValue: 1 << 2) }
    /// The core, or a core linked to it, has had a next step. Only then may `adoptionLeads` find it.
    static var hasHadNextStep: CoreMarks { CoreMarks(rawValue: 1 << 3) }
    /// It has been cancelled, which it stays: the first cancellation decides its error, if one rejects it, and no series
    /// begins another round. (Externally settled promises know that by themselves.)
    static var isCancelled: CoreMarks { CoreMarks(rawValue: 1 << 4) }
}

// MARK: Any thread

/// State of a core that several threads may change, in one word. It tells nothing about the rest of the core, so every
/// access is relaxed: `state` orders what threads do with a core.
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

    /// Marks of other parts of the library that refer to the core. A marked core is never reused. Any thread that has a
    /// reference may add a mark, and another thread may release the core.
    var annotations: CoreAnnotations {
        @inline(__always) get {
            CoreAnnotations(rawValue: UInt8(truncatingIfNeeded: word.load(ordering: .relaxed) & Self.annotationsMask))
        }
    }

    func annotate(_ annotation: CoreAnnotations) { word.bitwiseOr(UInt32(annotation.rawValue), ordering: .relaxed) }

    // MARK: Withdrawals

    // The number of waiters withdrawn since the last sweep, which is at least the number of tombstones in the list. The
    // list is swept when they outnumber the other nodes, so that a withdrawal costs the same however long the list is.
    // The count begins at zero or below, and a sweep is due at 16. It wraps around at its largest number.

    private static var countShift: UInt32 { 8 }
    private static var countWhenDue: Int32 { 16 }
    /// Longer lists are also swept after this many withdrawals: each then costs a few visits.
    private static var mostBetweenSweeps: Int { 1 << 22 }

    /// Counts a withdrawn waiter. Any thread.
    /// - Returns: the count beyond the one that makes a sweep due; zero for the withdrawal that does.
    func countWithdrawal() -> Int32 {
        let word = word.wrappingAdd(1 << Self.countShift, ordering: .relaxed).newValue
        return Int32(bitPattern: word) >> Int32(Self.countShift) - Self.countWhenDue
    }

    /// The list has been swept. The next sweep follows after as many withdrawals as there are nodes left, at least 16.
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

/// Marks of other parts of the library that refer to a core.
struct CoreAnnotations: OptionSet {
    let rawValue: UInt8

    /// `TraceRegistry` has an entry for it. Set under the lock there.
    static var isRecorded: CoreAnnotations { CoreAnnotations(rawValue: 1 << 0) }
    /// Its thread may never drive its loop, so the call site is noted; see `EventLoop.note`.
    static var isNoted: CoreAnnotations { CoreAnnotations(rawValue: 1 << 1) }
    /// A rejected `when` no longer waits for it. From then on, its rejection is not reported if it has no handler (`end`).
    /// It continues without a listener, but is cancelled like others when a later listener leaves.
    static var isDetached: CoreAnnotations { CoreAnnotations(rawValue: 1 << 2) }
    /// Its producer may hand it out, or attach a waiter to it, after it has handed it out once.
    static var isHandedOutAgain: CoreAnnotations { CoreAnnotations(rawValue: 1 << 3) }
    /// A cancellation decides the outcome of the externally settled core: rejects it now, or after its clean-ups or work.
    /// Or it is one of `cancelled(with:)`.
    static var isDecidedByCancellation: CoreAnnotations { CoreAnnotations(rawValue: 1 << 4) }
    /// A core with one of these is never linked.
    static var ofUnlinked: CoreAnnotations { [.isDetached, .isHandedOutAgain] }
}
