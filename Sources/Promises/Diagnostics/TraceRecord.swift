import Reactor

/// Facts about one promise that are stored outside its core: its step in the chain, and its name.
///
/// Each record in a chain refers to the previous one, and outlives its promise while a later record needs it. The list
/// has at most 64 records, so neither memory nor the depth of a release grows with the chain. The 65th record refers
/// instead to the first record, and to copies of the newest records before itself.
// @unchecked Sendable: the `let`s are constant, and the lock of `TraceRegistry` guards the `var`s.
final class TraceRecord: @unchecked Sendable {
    /// The call that made the promise; `nil` if the promise was not traced and only has a name.
    let step: (operation: StaticText, callSite: CallSite)?
    let type: Any.Type?
    let loop: Int
    let ordinal: Int

    /// In monotonic time.
    let made = LoopClock.monotonic.now.nanoseconds

    let parent: TraceRecord?
    /// The first record of the chain, if the list of parents no longer leads to it.
    private let first: TraceRecord?
    /// Steps from the first record to this one.
    private let count: Int
    /// Steps still in the list.
    private let kept: Int16
    /// The group that the walk of this number has put it in; see `PromiseWalk`.
    var mark: (group: Int16, walk: UInt32) = (0, 0)

    var name: String?
    /// The record of the promise that the handler has returned. Released with the core, so that releases do not nest.
    var awaited: TraceRecord?
    /// The core while it is alive. Accessed only under the lock.
    var core: TracedCore?

    private static var mostKept: Int16 { 64 }
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

    /// Allows the core to be released once its record has left the table.
    func leave() {
        core = nil
        awaited = nil
    }

    /// The line that made the promise, if it called an initializer or `pending()`.
    var callSite: CallSite? {
        step.flatMap { $0.operation.text == Trace.Step.making.description ? $0.callSite : nil }
    }

    private func shortened() -> TraceRecord {
        guard kept >= Self.mostKept else { return self }
        let chain = chain
        let first = first ?? chain.first!
        var copy: TraceRecord?
        for record in chain.suffix(Self.mostCopied) { copy = TraceRecord(copying: record, after: copy, first: first) }
        return copy!
    }

    /// The records in the list up to this one, oldest first.
    private var chain: [TraceRecord] {
        var records: [TraceRecord] = []
        var next: TraceRecord? = self
        while let record = next {
            records.append(record)
            next = record.parent
        }
        return records.reversed()
    }

    // The lock must have been held continuously since `roots` was made.

    /// - Parameter type: the type's text, if the caller knows it better.
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
            // A settled promise awaits nothing. (Without this check, the description of promises that wait for each
            // other would not end.)
            let isAwaiting = depth < Self.deepest && record.awaited != nil && record.isPending(&roots)
            let awaited = isAwaiting ? record.awaited?.trace(&roots, depth: depth + 1) : nil
            return Trace.Step(
                operation: step.operation.text, callSite: step.callSite, name: record.name, awaited: awaited)
        }
        return Trace(steps: steps, omitted: omitted)
    }

    func isPending(_ roots: inout Roots) -> Bool {
        // The core is alive: its deinit must first remove the record, under the lock. The core is not retained, because
        // its deinit may have begun.
        guard let core else { return false }
        return roots.isPending(core)
    }
}
