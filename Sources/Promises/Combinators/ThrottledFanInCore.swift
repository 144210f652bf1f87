import Reactor
import Synchronization

/// The result of a combinator that comes by its sources one after the other: only so many are under way at a time.
///
/// Where sources come from is the user's code, which is why they are not taken inline where others settle, as a
/// `FanInCore` would, but by ordinary jobs of the loop: so they are at home, never in the midst of anything, and a hundred
/// thousand sources that have all settled take their turns with everybody else.
///
/// There is one node for each source that is under way, and nothing for those that have settled but what `Callbacks` keeps.
// @unchecked: used on its loop's thread only, but for what PromiseCore itself allows others.
@usableFromInline
final class ThrottledFanInCore: CombinatorCore, @unchecked Sendable {
    /// What is specialised of it: closures over the values.
    @usableFromInline
    struct Callbacks {
        /// The next source, `nil` after the last. The user's code: it may do anything, drive the loop among others.
        let next: () throws -> PromiseCore?
        /// Puts the outcome of the source with that number away.
        let keep: (Int, Source<Void>) -> Void
        /// Fulfills the core with what has been put away.
        let complete: (PromiseCore) -> Void

        @usableFromInline
        init(
            next: @escaping () throws -> PromiseCore?, keep: @escaping (Int, Source<Void>) -> Void,
            complete: @escaping (PromiseCore) -> Void
        ) {
            self.next = next
            self.keep = keep
            self.complete = complete
        }
    }

    /// Until the result settles.
    private var callbacks: Callbacks?
    private let limit: Int
    private let keepsRejections: Bool
    /// The nodes of the sources that are under way, by their numbers. Not owned: a node stands in its source's list, or is on its
    /// way here; either holds it.
    private var nodes: [Int: Unmanaged<InputNode>] = [:]
    /// How many sources have come.
    private var taken = 0
    /// How many of them nobody will ever settle. They keep their places.
    private var lost = 0
    /// There are no more.
    private var isExhausted = false
    private var isTaking = false
    private var wasCancelled = false

    /// - Parameter limit: how many at a time; one at least.
    @usableFromInline
    init(_ limit: Int, keepsRejections: Bool, _ callbacks: Callbacks, code: @escaping (PromiseCore, Phase) -> Void) {
        self.limit = limit
        self.keepsRejections = keepsRejections
        self.callbacks = callbacks
        super.init(code: code)
    }

    /// Takes the first sources.
    @usableFromInline
    func start() {
        take()
        lose()
    }

    /// Takes sources for as long as there is room for them.
    private func take() {
        // If a source settles because the user's code drives the loop, its place is taken once that returns.
        guard !isTaking else { return }
        isTaking = true
        // A copy: the user's code may cancel the result.
        while !isExhausted, nodes.count + lost < limit, let callbacks = makeCallbacks {
            let source: PromiseCore
            do {
                guard let next = try callbacks.next() else {
                    isExhausted = true
                    break
                }
                source = next
            } catch { source = PromiseCore(error: error, origin: nil) }
            if wasCancelled {
                source.cancelIfUnobserved()
                break
            }
            let node = InputNode(of: self, taken)
            nodes[taken] = .passUnretained(node)
            taken += 1
            begin()
            source.attach(node)
        }
        isTaking = false
        if isExhausted && nodes.isEmpty && lost == 0, let callbacks = makeCallbacks {
            callbacks.complete(self)
            self.callbacks = nil
        }
    }

    private var makeCallbacks: Callbacks? { isOpen && !wasCancelled ? callbacks : nil }

    override func settled(_ index: Int, _ source: Unmanaged<PromiseCore>, _ kind: UInt) {
        nodes[index] = nil
        defer { lose() }
        guard let callbacks = makeCallbacks else { return source.release() }
        guard kind == State.fulfilled || keepsRejections else {
            source._withUnsafeGuaranteedRef { storeError($0.error, $0.origin) }
            source.release()
            retain()
            settle(State.rejected)
            self.callbacks = nil
            return
        }
        callbacks.keep(index, Source(source, isFulfilled: kind == State.fulfilled))
        source.release()
        take()
    }

    override func abandoned(_ index: Int) {
        nodes[index] = nil
        lost += 1
        lose()
    }

    override func letGo() { callbacks = nil }

    /// Cancels what is under way, as far as nobody else waits for it, and takes no more.
    override func cancelProducer() -> Bool {
        wasCancelled = true
        for index in nodes.keys.sorted() {
            // What is let go here may run the user's code, and that the loop.
            guard let node = nodes.removeValue(forKey: index) else { continue }
            node.takeUnretainedValue().leave()?.enqueueCancel()
        }
        callbacks = nil
        return true
    }
}
