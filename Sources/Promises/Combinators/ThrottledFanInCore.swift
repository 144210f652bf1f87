/// The result of a combinator that takes its sources one after another.
///
/// User code supplies the sources, so jobs on the loop take them, unlike in a `FanInCore`, where the code that settles
/// other sources does. User code then runs on its own thread and never inside another handler, and a hundred thousand
/// settled sources alternate with other work. Only `Callbacks` keeps anything for settled sources.
// @unchecked: accessed only on its loop's thread, except for what PromiseCore itself allows other threads.
@usableFromInline
final class ThrottledFanInCore: CombinatorCore, @unchecked Sendable {
    private struct Callbacks {
        /// Returns the next source, or `nil` after the last. User code; it may even drive the loop.
        let next: () throws -> PromiseCore?
        /// Stores the value of the fulfilled source with that number.
        let keep: (Int, CoreRef) -> Void
        let complete: (PromiseCore) -> Void
    }

    /// Not `nil` until the result settles.
    private var callbacks: Callbacks?
    private let limit: Int
    /// The nodes of the pending sources, by number. Unowned: a node is in its source's list or queued to run, and the
    /// list or queue retains it.
    private var nodes: [Int: InputNode] = [:]
    private var taken = 0
    private var isExhausted = false
    private var isTaking = false

    /// - Parameter limit: at least 1.
    @usableFromInline
    init(
        _ limit: Int, code: CoreCode, next: @escaping () throws -> PromiseCore?,
        keep: @escaping (Int, CoreRef) -> Void, complete: @escaping (PromiseCore) -> Void
    ) {
        self.limit = limit
        callbacks = Callbacks(next: next, keep: keep, complete: complete)
        super.init(code: code)
    }

    @usableFromInline
    func start() {
        take()
        inputDidEnd()
    }

    private func take() {
        // User code may be driving the loop; the next source is taken after that.
        guard !isTaking else { return }
        isTaking = true
        // A copy of `callbacks`, because user code may cancel the result.
        while !isExhausted, nodes.count < limit, let callbacks = activeCallbacks {
            let source: PromiseCore
            do {
                guard let next = try callbacks.next() else {
                    isExhausted = true
                    break
                }
                source = next
            } catch { source = PromiseCore(error: error) }
            if isCancelling {
                source.cancelUnlessWanted()
                break
            }
            // User code has rejected another source, and thereby the result.
            guard isOpen else {
                source.annotate(.isDetached)
                break
            }
            // At once, since the node of a settled source would run only after this inline job.
            if let outcome = source.settled, !outcome.isFulfilled {
                source.markHandled()
                rejectResult(as: outcome)
                break
            }
            let node = InputNode(bringingValuesLaterTo: self, taken)
            nodes[taken] = node
            taken += 1
            begin()
            node.core.borrow { source.attach($0, owned: node.core) }
        }
        isTaking = false
        if isExhausted && nodes.isEmpty, let callbacks = activeCallbacks {
            callbacks.complete(self)
            self.callbacks = nil
        }
    }

    private var activeCallbacks: Callbacks? { isOpen && !isCancelling ? callbacks : nil }

    override func inputDidSettle(_ index: Int, _ source: AnySource) {
        nodes[index] = nil
        defer { inputDidEnd() }
        guard let callbacks = activeCallbacks else { return source.reference.release() }
        guard source.isFulfilled else {
            rejectResult(as: source)
            return source.reference.release()
        }
        callbacks.keep(index, source.reference)
        source.reference.release()
        take()
    }

    private func rejectResult(as source: AnySource) {
        reject(source.error, at: source.callSite)
        // Released last, because that may run user code.
        let unused = callbacks.take()
        for index in nodes.keys.sorted() { nodes.removeValue(forKey: index)?.detachFromSource() }
        withExtendedLifetime(unused) {}
    }

    override func inputWillNotCome(_ index: Int) {
        nodes[index] = nil
        inputDidEnd(.loopEnded)
    }

    override func releaseKept() { callbacks = nil }

    override var inputs: [PromiseCore] { nodes.keys.sorted().compactMap { nodes[$0]?.core.object } }
}
