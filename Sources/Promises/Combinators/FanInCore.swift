import ReactorLibc
import Reactor

/// The result of a combinator that knows all its promises from the beginning, and keeps them as they settle.
///
/// Each pending source has an `InputNode` in its list. All nodes run on the combinator's thread, so values that must
/// not cross threads do not. A source that settles on that thread runs its node inline, without an extra job. Only the
/// closure that reads the values is generic.
// @unchecked: accessed only on its loop's thread, except for what PromiseCore itself allows other threads.
@usableFromInline
final class FanInCore: CombinatorCore, @unchecked Sendable {
    @usableFromInline
    enum Rule {
        /// `when(fulfilled:)`: all values are needed, and the first rejection rejects.
        case all
        /// `when(resolved:)`: all outcomes are needed.
        case each
        /// `race`: the first outcome counts.
        case first
        /// `race` of guarantees: the first value counts; rejections do not.
        case firstValue
        /// `race(fulfilled:)`: the first value counts; without a value, all rejections count.
        case firstFulfilled

        fileprivate var isRace: Bool { self != .all && self != .each }
    }

    private let rule: Rule
    @usableFromInline let count: Int
    /// Decisive outcomes still missing. Exclusivity is unchecked because no other code is called while it changes.
    @exclusivity(unchecked) private var missing: Int
    /// Rejected sources in a race that another source may still win.
    private var rejections = 0
    private var isSealed = false
    // One slot for each source, in order. A slot holds the source's node, unowned, until the node runs, and then the
    // source, owned until the result settles. Keeping sources longer would keep the losers' values. It would also free
    // a sequence of combinators, each the source of the next, by nested deinits.
    private let slots: UnsafeMutablePointer<InputSlot>
    private let complete: (FanInCore, Int) -> Void

    /// An address, with a flag in its lowest bit, since objects' addresses are multiples of 16.
    private struct InputSlot {
        private let word: UInt

        static var empty: InputSlot { InputSlot(word: 0) }

        private static var settledBit: UInt { 1 }

        static func waiting(_ node: InputNode) -> InputSlot { InputSlot(word: node.core.address) }

        static func settled(_ source: CoreRef) -> InputSlot { InputSlot(word: source.address | settledBit) }

        @inline(__always)
        var node: InputNode? {
            word & Self.settledBit == 0 ? CoreRef(addressOrZero: word).map { InputNode($0) } : nil
        }

        @inline(__always)
        var source: CoreRef? { word & Self.settledBit != 0 ? CoreRef(address: word & ~Self.settledBit) : nil }
    }

    /// - Parameters:
    ///   - complete: settles the result when the outcome of the source at an index satisfies the rule.
    ///   - code: here, handles only the value.
    @usableFromInline
    init(
        _ rule: Rule, _ count: Int, complete: @escaping (FanInCore, Int) -> Void,
        code: CoreCode
    ) {
        self.rule = rule
        self.count = count
        self.complete = complete
        missing = rule.isRace ? 1 : count
        // malloc, because `allocate` asks for alignment, which the C library serves more slowly. Without memory the
        // process ends, as everywhere in Swift.
        slots = malloc(max(count, 1) * MemoryLayout<InputSlot>.stride)!.bindMemory(to: InputSlot.self, capacity: count)
        slots.initialize(repeating: .empty, count: count)
        super.init(code: code)
    }

    // The settling code has already released the sources.
    deinit { free(slots) }

    override func releaseKept() {
        for index in 0..<count {
            guard let source = slots[index].source else { continue }
            slots[index] = .empty
            source.release()
        }
    }

    @inlinable @inline(__always)
    func value<Value>(at index: Int, as type: Value.Type) -> Value {
        settledSource(index).payload.value(as: type)
    }

    @inlinable
    func result<Value>(at index: Int, as type: Value.Type) -> Result<Value, any Error> {
        let source = settledSource(index)
        return Source<Value>(source, isFulfilled: source.borrow { $0.state.load().isFulfilled }).result
    }

    @usableFromInline
    func settledSource(_ index: Int) -> CoreRef {
        guard let source = slots[index].source else { preconditionFailure("no outcome at \(index)") }
        return source
    }

    @usableFromInline
    func add(_ source: PromiseCore, at index: Int) {
        begin()
        if let outcome = source.settled {
            source.markHandled()
            outcome.reference.retain()
            return inputDidSettle(index, outcome)
        }
        let node = InputNode(of: self, index, role: .inlineAtHome)
        slots[index] = .waiting(node)
        node.core.borrow { source.attach($0, owned: node.core) }
    }

    @usableFromInline
    func seal() {
        isSealed = true
        if count == 0 { complete(self, 0) }
        // A source that had already settled may have decided.
        if !isOpen {
            if rule.isRace { stopSourcesLater() } else { detachSources() }
        }
        inputDidEnd()
    }

    override func inputDidSettle(_ index: Int, _ source: AnySource) {
        if isOpen && !isCancelling && (source.isFulfilled || rule == .each) {
            slots[index] = .settled(source.reference)
            missing -= 1
            if missing == 0 {
                complete(self, index)
                didSettle()
            }
        } else {
            handleUnused(index, source.reference)
        }
        inputDidEnd()
    }

    /// Handles an outcome that is late, or a rejection that does not decide.
    private func handleUnused(_ index: Int, _ source: CoreRef) {
        slots[index] = .empty
        if isCancelling { return source.release() }
        switch rule {
        case .all where isOpen, .first where isOpen:
            reject(source.payload.error, at: source.payload.callSite)
            didSettle()
            if rule == .all { detachSources() }
        case .firstFulfilled where isOpen:
            slots[index] = .settled(source)
            rejections += 1
            guard rejections == count else { return }
            reject(PromiseError.allRejected((0..<count).map { settledSource($0).payload.error }))
            return releaseKept()
        default: break
        }
        source.release()
    }

    private func didSettle() {
        releaseKept()
        if rule.isRace && isSealed { stopSources() }
    }

    private func detachSources() { leaveSources { $0.detachFromSource() } }

    private func stopSources() { leaveSources { $0.withdrawAndCancel() } }

    /// Cancels the losers of a race that was decided when it was made. A job does so, so that the caller can first
    /// attach handlers to losers, as in a race decided later.
    private func stopSourcesLater() {
        guard (0..<count).contains(where: { slots[$0].node != nil }) else { return }
        EventLoop.ofCurrentThread.enqueue(InternalJob { [self] in stopSources() })
    }

    @inline(__always)
    private func leaveSources(_ leave: (InputNode) -> Void) {
        for index in 0..<count {
            guard let node = slots[index].node else { continue }
            slots[index] = .empty
            // The node's list or the queue retains it.
            leave(node)
        }
    }

    override func inputWillNotCome(_ index: Int) {
        slots[index] = .empty
        inputDidEnd(.loopEnded)
    }

    override var needsAllInputs: Bool { !rule.isRace }

    override var inputs: [PromiseCore] {
        (0..<count).compactMap { slots[$0].node?.core.object }
    }
}
