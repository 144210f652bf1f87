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
    /// The node is no reason to keep its source's producer working: a `WatchingCore`, or a `CancellationWaiter`.
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

/// What a node is about to do.
@usableFromInline
struct CoreMarks: OptionSet {
    @usableFromInline let rawValue: UInt8
    @inlinable init(rawValue: UInt8) { self.rawValue = rawValue }

    /// It, or a core that is linked to it, waits to adopt another core's outcome, without a link.
    static var isAdopting: CoreMarks { CoreMarks(rawValue: 1 << 0) }
    /// Its operation receives a cancellation: the core settles when the operation has ended, and another cancellation has
    /// no effect.
    @usableFromInline static var isEndingCancelled: CoreMarks { CoreMarks(rawValue: 1 << 1) }
    /// The payload refers to the producer that will settle it; see `beginProduction`.
    static var hasHeldProducer: CoreMarks { CoreMarks(rawValue: 1 << 2) }
    /// It is the job of a timer that has not fired, whose id is in the payload; see After.swift.
    static var hasTimer: CoreMarks { CoreMarks(rawValue: 1 << 3) }
    /// The loop counts it among its waiting handlers.
    static var countsAsWaiting: CoreMarks { CoreMarks(rawValue: 1 << 4) }
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
