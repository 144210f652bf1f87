import Reactor
import Synchronization

/// The result of a combinator of promises that are all there from the beginning: a promise that keeps its sources as
/// they settle.
///
/// Each source that is pending has an `InputNode` in its list. All of them run on the thread of the call, wherever
/// the sources are settled, so that values which must not cross threads do not; on that thread they run inline, so
/// that a combinator costs no hop. Nothing here is generic but the closure that looks at the values.
// @unchecked: used on its loop's thread only, but for what PromiseCore itself allows others.
@usableFromInline
final class FanInCore: CombinatorCore, @unchecked Sendable {
    /// What a source's settling means for the result.
    @usableFromInline
    enum Rule {
        /// All values are needed, and the first rejection rejects: `when(fulfilled:)`.
        case all
        /// All outcomes are needed: `when(resolved:)`.
        case each
        /// The first outcome counts: `race`.
        case first
        /// The first value counts, and a source without one does not: `race` of guarantees.
        case firstValue
        /// The first value counts, and the rejections if there is none: `race(fulfilled:)`.
        case firstFulfilled

        /// Whether one source decides, and the others are not wanted any more.
        fileprivate var isRace: Bool { self != .all && self != .each }
    }

    private let rule: Rule
    @usableFromInline let count: Int
    /// How many outcomes that count are still missing. Unchecked: nothing is called out to while it is changed.
    @exclusivity(unchecked) private var missing: Int
    /// How many sources have been rejected that may yet be outdone by another.
    private var rejections = 0
    /// All sources are there.
    private var isSealed = false
    // One for each source, in their order: its node, not owned, until it runs; then the source, owned until the result
    // has settled. Were they kept for longer, so would be the values of losers; and a row of combinators, each of which
    // has the one before as its source, would be freed by one deinit inside another.
    private let slots: UnsafeMutablePointer<Slot>
    private let complete: (FanInCore, Int) -> Void

    private enum Slot {
        case empty
        case waiting(Unmanaged<InputNode>)
        case settled(Unmanaged<PromiseCore>)
    }

    /// - Parameters:
    ///   - complete: settles the gathering, when its rule is met by the outcome of the source at an index.
    ///   - code: what every core has, here for its value only.
    @usableFromInline
    init(
        _ rule: Rule, _ count: Int, complete: @escaping (FanInCore, Int) -> Void,
        code: @escaping (PromiseCore, Phase) -> Void
    ) {
        self.rule = rule
        self.count = count
        self.complete = complete
        missing = rule.isRace ? 1 : count
        slots = .allocate(capacity: count)
        slots.initialize(repeating: .empty, count: count)
        super.init(code: code)
    }

    deinit {
        letGo()
        slots.deallocate()
    }

    override func letGo() {
        for index in 0..<count {
            guard case .settled(let source) = slots[index] else { continue }
            slots[index] = .empty
            source.release()
        }
    }

    /// The value of a source that has been fulfilled.
    @inlinable @inline(__always)
    func value<Value>(at index: Int, as type: Value.Type) -> Value {
        source(index)._withUnsafeGuaranteedRef { $0.value(as: type) }
    }

    /// The outcome of a source that is kept.
    @inlinable
    func result<Value>(at index: Int, as type: Value.Type) -> Result<Value, any Error> {
        let source = source(index)
        let kind = source._withUnsafeGuaranteedRef { $0.state.load(ordering: .acquiring) } & State.kindMask
        return Source<Value>(source, isFulfilled: kind == State.fulfilled).result
    }

    @usableFromInline
    func source(_ index: Int) -> Unmanaged<PromiseCore> {
        guard case .settled(let source) = slots[index] else { preconditionFailure("no outcome at \(index)") }
        return source
    }

    @usableFromInline
    func add(_ source: PromiseCore, at index: Int) {
        begin()
        if let (root, kind) = source.settled {
            root._withUnsafeGuaranteedRef { $0.markHandled() }
            return settled(index, root.retain(), kind)
        }
        let node = InputNode(of: self, index, role: .inlineAtHome)
        slots[index] = .waiting(.passUnretained(node))
        source.attach(node)
    }

    /// All sources are there.
    @usableFromInline
    func seal() {
        isSealed = true
        if rule.isRace && !isOpen { stopSourcesLater() }
        lose()
    }

    override func settled(_ index: Int, _ source: Unmanaged<PromiseCore>, _ kind: UInt) {
        if isOpen && (kind == State.fulfilled || rule == .each) {
            slots[index] = .settled(source)
            missing -= 1
            if missing == 0 {
                complete(self, index)
                didSettle()
            }
        } else {
            miss(index, source, kind)
        }
        lose()
    }

    /// An outcome that comes too late, or is a rejection and not what was hoped for.
    private func miss(_ index: Int, _ source: Unmanaged<PromiseCore>, _ kind: UInt) {
        slots[index] = .empty
        switch rule {
        case .all where isOpen, .first where isOpen:
            source._withUnsafeGuaranteedRef { storeError($0.error, $0.origin) }
            retain()
            settle(State.rejected)
            didSettle()
        case .firstFulfilled where isOpen:
            slots[index] = .settled(source)
            rejections += 1
            guard rejections == count else { return }
            reject(PromiseError.ofNone((0..<count).map { self.source($0)._withUnsafeGuaranteedRef { $0.error } }))
            return letGo()
        default: break
        }
        source.release()
    }

    private func didSettle() {
        letGo()
        if rule.isRace && isSealed { stopSources() }
    }

    /// The same for a race that has been won before it was made: by a job, so that the caller can still attach handlers to
    /// the losers, as with a race that is won later.
    private func stopSourcesLater() {
        let loop = EventLoop.ofCurrentThread
        if loop.hasEnded { return }
        for index in 0..<count {
            guard case .waiting = slots[index] else { continue }
            return loop.enqueue(StopLosers(self))
        }
    }

    /// Cancels the losers of a race, as far as no other handler waits for them.
    fileprivate func stopSources() {
        // While the loop ends, other threads discard nodes.
        if EventLoop.ofCurrentThread.hasEnded { return }
        for index in 0..<count {
            guard case .waiting(let node) = slots[index] else { continue }
            slots[index] = .empty
            // It stands in its source's list, or is on its way here; either holds it.
            node.takeUnretainedValue().leaveAndCancel()
        }
    }

    override func abandoned(_ index: Int) {
        slots[index] = .empty
        lose()
    }

    override func areSourcesHeldUp(_ here: UnsafeMutableRawPointer, _ limit: inout Int) -> Bool {
        // One of those that are all needed; or each of those that race.
        var areAllHeldUp = rule.isRace
        var hasSources = false
        for index in 0..<count {
            guard case .waiting(let node) = slots[index] else { continue }
            hasSources = true
            let isHeldUp = node._withUnsafeGuaranteedRef { $0.isHeldUp(here, &limit) }
            if isHeldUp && !rule.isRace { return true }
            areAllHeldUp = areAllHeldUp && isHeldUp
        }
        return hasSources && areAllHeldUp
    }

    /// Cancels what it waits for, as far as nobody else does.
    override func cancelProducer() -> Bool {
        for index in 0..<count {
            guard case .waiting(let node) = slots[index] else { continue }
            slots[index] = .empty
            // It stands in its source's list, or is on its way here; either holds it.
            node.takeUnretainedValue().leave()?.enqueueCancel()
        }
        letGo()
        return true
    }
}

/// Cancels the losers of a race that was won when it was made.
private final class StopLosers: Job {
    private let race: FanInCore

    init(_ race: FanInCore) {
        self.race = race
        super.init()
    }

    override func run() { race.stopSources() }

    override var isReportedUndelivered: Bool { false }
}
