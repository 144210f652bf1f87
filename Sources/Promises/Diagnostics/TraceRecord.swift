import Reactor

/// Facts about one promise that are stored outside its core: its step in the chain, and its name.
///
/// The records of a chain refer to the previous ones, and outlive their promises as long as a later record needs them.
/// The list never has more than 64 records, so that neither memory nor the depth of a release grows with the chain. The
/// 65th record refers instead to copies of the newest ones before it, and to the first one.
// @unchecked Sendable: the `let`s are constant, and the `var`s are accessed only under the lock of `TraceRegistry`.
final class TraceRecord: @unchecked Sendable {
    /// The call that made the promise. `nil` if it was made with tracing off, and only has a name.
    let step: (operation: StaticText, callSite: CallSite)?
    let type: Any.Type?
    /// The serial number of the promise's loop.
    let loop: Int
    /// The position in the order of creation.
    let ordinal: Int

    /// The time at which it was made, by the monotonic clock.
    let made = LoopClock.monotonic.now.nanoseconds

    let parent: TraceRecord?
    /// The first record of the chain, if the list of parents no longer leads to it.
    private let first: TraceRecord?
    /// The number of steps from the first to this one.
    private let count: Int
    /// The number of these steps that are still in the list.
    private let kept: Int32

    var name: String?
    /// The record of the promise that the handler has returned. Released with the core, so a release from here ends at
    /// the next record whose core is alive.
    var awaited: TraceRecord?
    /// The core, as long as it is alive; accessed only under the lock.
    var core: TracedCore?

    private static var mostKept: Int32 { 64 }
    private static var mostCopied: Int { 31 }
    private static var deepest: Int { 8 }

    init(
        _ step: (operation: StaticText, callSite: CallSite)?, after parent: TraceRecord?, type: Any.Type?, loop: Int,
        ordinal: Int
    ) {
        let parent = parent?.step == nil ? nil : parent?.shortened()
        self.step = step
        self.type = type
        self.loop = loop
        self.ordinal = ordinal
        self.parent = parent
        first = parent?.first
        count = (parent?.count ?? 0) + 1
        kept = (parent?.kept ?? 0) + 1
    }

    private init(copying other: TraceRecord, after parent: TraceRecord?, first: TraceRecord?) {
        step = other.step
        type = other.type
        loop = other.loop
        ordinal = other.ordinal
        name = other.name
        awaited = nil
        self.parent = parent
        self.first = first
        count = other.count
        kept = (parent?.kept ?? 0) + 1
    }

    /// Removes the references of a record that has left the table, so its core may be released.
    func leave() {
        core = nil
        awaited = nil
    }

    /// The line that made the promise, if it called an initializer or `pending()`.
    var callSite: CallSite? {
        step.flatMap { $0.operation.text == Trace.Step.making.description ? $0.callSite : nil }
    }

    /// This record, or a copy with a shorter list before it, so that there is room for one more.
    private func shortened() -> TraceRecord {
        guard kept >= Self.mostKept else { return self }
        let chain = chain
        let first = first ?? chain.first!
        var copy: TraceRecord?
        for record in chain.suffix(Self.mostCopied) { copy = TraceRecord(copying: record, after: copy, first: first) }
        return copy!
    }

    /// The records up to this one that are still in the list, oldest first.
    private var chain: [TraceRecord] {
        var records: [TraceRecord] = []
        var next: TraceRecord? = self
        while let record = next {
            records.append(record)
            next = record.parent
        }
        return records.reversed()
    }

    // The lock must have been held since `roots` was made.

    /// - Parameter type: its text, if that is known better than here.
    func provenance(type: String? = nil, callSite: CallSite?, _ roots: inout Roots) -> Provenance {
        var known = Provenance(name: name, type: type ?? self.type.map { "\($0)" }, callSite: callSite)
        known.trace = trace(&roots)
        return known
    }

    private func trace(_ roots: inout Roots, depth: Int = 0) -> Trace? {
        guard step != nil else { return nil }
        var chain = chain
        var omitted = 0
        if let first {
            omitted = count - chain.count - 1
            chain.insert(first, at: 0)
        }
        let steps = chain.map { record in
            let step = record.step!
            // A settled promise awaits nothing. (Promises that wait for each other would otherwise be described without
            // end.)
            let isAwaiting = depth < Self.deepest && record.awaited != nil && record.isPending(&roots)
            let awaited = isAwaiting ? record.awaited?.trace(&roots, depth: depth + 1) : nil
            return Trace.Step(
                operation: step.operation.text, callSite: step.callSite, name: record.name, awaited: awaited)
        }
        return Trace(steps: steps, omitted: omitted)
    }

    /// Whether the promise is alive and pending.
    func isPending(_ roots: inout Roots) -> Bool {
        // The core is alive: before its deinit ends, it must remove its record, for which it needs the lock. Its deinit
        // may have begun, so the core is not retained.
        guard let core else { return false }
        return roots.isPending(core)
    }
}
