import Reactor

/// What is known of one promise beside its core: its step in the chain, and its name.
///
/// Records of a chain point to those before them, and outlive their promises for as long as a later one needs them. The
/// list is never longer than 64, so that neither memory nor the depth of a release grows with the chain: the record that
/// would be the 65th stands on copies of the newest before it, and on the first.
// @unchecked Sendable: the `let`s are constant, the `var`s are touched under the lock of `TraceRegistry` only.
final class TraceRecord: @unchecked Sendable {
    /// What made the promise. `nil`: it was made with tracing off, and only has a name.
    let step: (operation: StaticText, origin: CallSite)?
    let type: Any.Type?
    /// The serial number of the loop that it belongs to.
    let loop: Int
    /// The order of making.
    let ordinal: Int

    private let parent: TraceRecord?
    /// The chain's first, where the list of parents no longer leads to it.
    private let first: TraceRecord?
    /// The steps from the first to this one.
    private let count: Int
    /// The same of those that are still there.
    private let kept: Int32

    var name: String?
    /// The record of the promise that the handler has returned. Dropped with the core, so a release from here ends at the
    /// next living one.
    var awaited: TraceRecord?
    /// The core, as long as it lives; only to be looked at under the lock.
    var core: Unmanaged<PromiseCore>?

    private static var mostKept: Int32 { 64 }
    private static var mostCopied: Int { 31 }
    private static var deepest: Int { 8 }

    init(
        _ step: (operation: StaticText, origin: CallSite)?, after parent: TraceRecord?, type: Any.Type?, loop: Int,
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

    /// It has no place in the table any more, so its core may end.
    func leave() {
        core = nil
        awaited = nil
    }

    /// `Promise<Int>`
    var typeName: String? { type.map { "\($0)" } }

    /// Where the promise was made, if that was by hand.
    var creationSite: CallSite? {
        step.flatMap { $0.operation.text == Trace.Step.making.description ? $0.origin : nil }
    }

    /// Itself, or a copy with fewer before it, so that one more has room.
    private func shortened() -> TraceRecord {
        guard kept >= Self.mostKept else { return self }
        let chain = chain
        let first = first ?? chain.first!
        var copy: TraceRecord?
        for record in chain.suffix(Self.mostCopied) { copy = TraceRecord(copying: record, after: copy, first: first) }
        return copy!
    }

    /// The records up to this one that are still there, the oldest first.
    private var chain: [TraceRecord] {
        var records: [TraceRecord] = []
        var next: TraceRecord? = self
        while let record = next {
            records.append(record)
            next = record.parent
        }
        return records.reversed()
    }

    /// Under the lock.
    func trace() -> Trace? {
        var roots = Roots()
        return trace(&roots)
    }

    /// Under the lock, which has not been released since `roots` was made.
    func trace(_ roots: inout Roots, depth: Int = 0) -> Trace? {
        guard step != nil else { return nil }
        var chain = chain
        var omitted = 0
        if let first {
            omitted = count - chain.count - 1
            chain.insert(first, at: 0)
        }
        let steps = chain.map { record in
            let step = record.step!
            // Who has settled awaits nothing. (Promises that wait for each other would be told of without end.)
            let isAwaiting = depth < Self.deepest && record.awaited != nil && record.isPending(&roots)
            let awaited = isAwaiting ? record.awaited?.trace(&roots, depth: depth + 1) : nil
            return Trace.Step(
                operation: step.operation.text, origin: step.origin, name: record.name, awaited: awaited)
        }
        return Trace(steps: steps, omitted: omitted)
    }

    /// Whether the promise lives and is pending. Under the lock.
    var isPending: Bool {
        var roots = Roots()
        return isPending(&roots)
    }

    /// The same for one of several questions; under the lock, which has not been released since `roots` was made.
    func isPending(_ roots: inout Roots) -> Bool {
        // It lives: to end it must take its record out, for which it needs the lock. It may be about to, so it is not
        // retained.
        guard let core else { return false }
        return roots.isPending(core)
    }
}

/// Which cores were pending when a look at many of them came by; so that a chain of links, each of which leads to the next, is
/// followed once and not from each of its cores anew.
///
/// The cores that are asked about have records, and their links own what they lead to: under the lock of `TraceRegistry` none of
/// them goes, and no address stands for two.
struct Roots {
    private var known: [UnsafeMutableRawPointer: Bool] = [:]
    /// How many cores have been looked at. For tests.
    private(set) var visited = 0

    mutating func isPending(_ core: Unmanaged<PromiseCore>) -> Bool {
        var path: [UnsafeMutableRawPointer] = []
        var next = core
        var isPending = true
        while true {
            let address = next.toOpaque()
            if !known.isEmpty, let answer = known[address] {
                isPending = answer
                break
            }
            visited += 1
            let seen = next._withUnsafeGuaranteedRef { $0.state.load(ordering: .acquiring) }
            guard seen & State.kindMask == State.link else {
                isPending = seen & State.kindMask == State.pending
                // Most have no links, and are asked about once.
                if !path.isEmpty { known[address] = isPending }
                break
            }
            path.append(address)
            next = .fromOpaque(UnsafeRawPointer(bitPattern: seen & State.pointerMask)!)
        }
        for address in path { known[address] = isPending }
        return isPending
    }
}
