import Reactor
import Synchronization

/// The result of a combinator: a promise that keeps its sources as they settle.
///
/// Each source that is pending has a `GatheringNode` in its list. All of them run on the thread of the call, wherever
/// the sources are settled, so that values which must not cross threads do not; on that thread they run inline, so
/// that a combinator costs no hop. Nothing here is generic but the closure that looks at the values.
// @unchecked: used on its loop's thread only, but for what Core itself allows others.
@usableFromInline
final class Gathering: Core, @unchecked Sendable {
    /// What a source's settling means for the result.
    @usableFromInline
    enum Rule {
        /// All values are needed, and the first rejection rejects: `when(fulfilled:)`.
        case all
        /// The first outcome counts: `race`.
        case first
        /// The first value counts: `race` of guarantees.
        case firstValue
    }

    private let rule: Rule
    @usableFromInline let count: Int
    /// Nodes that are still to run, and one for whoever is adding sources. Atomic, since nodes whose loop has ended are
    /// discarded by whoever settles their sources. They touch nothing else here.
    private let outstanding = Atomic<Int>(1)
    /// Sources whose value is there.
    private var values = 0
    // One for each source, in their order: its node, not owned, until it runs; then the source, owned until the result
    // has settled. Were they kept for longer, so would be the values of losers; and a row of combinators, each of which
    // has the one before as its source, would be freed by one deinit inside another.
    private let slots: UnsafeMutablePointer<Slot>
    private let complete: (Gathering, Int) -> Void

    private enum Slot {
        case empty
        case waiting(Unmanaged<GatheringNode>)
        case fulfilled(Unmanaged<Core>)
    }

    /// - Parameters:
    ///   - complete: fulfills the gathering, when its rule is met by the value of the source at an index.
    ///   - code: what every core has, here for its value only.
    @usableFromInline
    init(
        _ rule: Rule, _ count: Int, complete: @escaping (Gathering, Int) -> Void,
        code: @escaping (Core, Phase) -> Void
    ) {
        self.rule = rule
        self.count = count
        self.complete = complete
        slots = .allocate(capacity: count)
        slots.initialize(repeating: .empty, count: count)
        super.init(state: State.pending, loop: EventLoop.addressOfThisThread, code: code)
    }

    deinit {
        letGoOfSources()
        slots.deallocate()
    }

    private func letGoOfSources() {
        for index in 0..<count {
            guard case .fulfilled(let source) = slots[index] else { continue }
            slots[index] = .empty
            source.release()
        }
    }

    /// The value of a source that has been fulfilled.
    @inlinable @inline(__always)
    func value<Value>(at index: Int, as type: Value.Type) -> Value {
        source(index)._withUnsafeGuaranteedRef { $0.value(as: type) }
    }

    @usableFromInline
    func source(_ index: Int) -> Unmanaged<Core> {
        guard case .fulfilled(let source) = slots[index] else { preconditionFailure("no value at \(index)") }
        return source
    }

    @usableFromInline
    func add(_ source: Core, at index: Int) {
        outstanding.add(1, ordering: .relaxed)
        if let (root, kind) = source.settled {
            root._withUnsafeGuaranteedRef { $0.markHandled() }
            return settled(index, root.retain(), kind)
        }
        let node = GatheringNode(self, index)
        slots[index] = .waiting(.passUnretained(node))
        source.attach(node)
    }

    /// All sources are there.
    @usableFromInline
    func seal() { lose() }

    /// Takes over the reference to `source`.
    fileprivate func settled(_ index: Int, _ source: Unmanaged<Core>, _ kind: UInt) {
        let isWanted = isOpen && (kind == State.fulfilled || rule != .firstValue)
        if !isWanted {
            slots[index] = .empty
            source.release()
        } else if kind == State.fulfilled {
            slots[index] = .fulfilled(source)
            values += 1
            if rule != .all || values == count {
                complete(self, index)
                letGoOfSources()
            }
        } else {
            slots[index] = .empty
            source._withUnsafeGuaranteedRef { storeError($0.error, $0.origin) }
            retain()
            settle(State.rejected)
            letGoOfSources()
            source.release()
        }
        lose()
    }

    /// A source will never settle.
    fileprivate func forsaken(_ index: Int) {
        // The node goes.
        slots[index] = .empty
        lose()
    }

    /// A source has settled, or never will.
    fileprivate func lose() {
        if outstanding.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { producerIsGone() }
    }

    /// Cancels what it waits for, as far as nobody else does.
    override func stopProducing() -> Bool {
        for index in 0..<count {
            guard case .waiting(let node) = slots[index] else { continue }
            slots[index] = .empty
            // It stands in its source's list, or is on its way here; either holds it.
            node.takeUnretainedValue().cancelAtHome()
        }
        return true
    }
}

/// What waits for one source of a gathering.
// @unchecked: as Core; the gathering is let go on its own thread, or by the last who holds the node.
private final class GatheringNode: Core, @unchecked Sendable {
    private var gathering: Gathering?
    private let index: Int

    init(_ gathering: Gathering, _ index: Int) {
        self.gathering = gathering
        self.index = index
        super.init(state: State.pending, loop: gathering.loop, role: .inlineAtHome) { _, _ in }
    }

    override func runAndRelease() {
        takeSource()
        super.runAndRelease()
    }

    /// The loop has ended. Each source's thread may be here at the same time, so the gathering is not told the outcome,
    /// only that none will come.
    override func discardAndRelease() {
        gathering.take()?.lose()
        super.discardAndRelease()
    }

    private func takeSource() {
        let word = upstream.exchange(Upstream.taken, ordering: .acquiring)
        guard word != Upstream.taken else { return }
        let source = Unmanaged<Core>.fromOpaque(UnsafeRawPointer(bitPattern: word & State.pointerMask)!)
        let gathering = gathering.take()
        if word & Upstream.mark == Upstream.forsaken {
            source.release()
            gathering?.forsaken(index)
        } else {
            gathering?.settled(index, source, word & State.kindMask)
        }
    }

    /// The gathering is cancelled.
    func cancelAtHome() {
        gathering = nil
        stop().source?.cancelInTurn()
    }
}
