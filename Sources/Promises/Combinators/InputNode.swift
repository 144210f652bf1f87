/// A combinator's waiter for one source: a core whose payload holds the combinator and the source's index.
struct InputNode {
    let core: CoreRef

    private struct Input {
        // Owned until the node has notified the combinator or has left. Moving an ordinary reference out took two
        // atomic operations.
        var combinator: UnownedReference<CombinatorCore>?
        let index: Int
        /// True when the node runs inline, but brings a value in a job.
        var bringsValueLater = false
    }

    /// - Parameter role: `inlineAtHome` for a node that runs at once when its source settles.
    @inline(__always)
    init(of combinator: CombinatorCore, _ index: Int, role: CoreRole = []) {
        // The combinator does not own the node, and forgets it when the operation is dropped.
        core = .retaining(PromiseCore.pending(Self.code, role: role.union(.isNotifiedOfDrop)))
        core.payload.store(Input(combinator: .retaining(combinator), index: index))
    }

    /// Makes a node that brings a rejection at once when its source settles, but a value in a job.
    init(bringingValuesLaterTo combinator: CombinatorCore, _ index: Int) {
        core = .retaining(PromiseCore.pending(Self.laterCode, role: [.inlineAtHome, .isNotifiedOfDrop]))
        core.payload.store(Input(combinator: .retaining(combinator), index: index, bringsValueLater: true))
    }

    init(_ core: CoreRef) { self.core = core }

    private static var code: CoreCode {
        CoreCode { core, phase in
            switch phase {
            case .run:
                let word = core.sourceWord.takeOut()
                notifyCombinator(of: core) {
                    $0.inputDidSettle($1, AnySource(word.core, isFulfilled: word.isFulfilled))
                }
                SpareCores.releaseOrKeep(node: core.ref)
            // No outcome will come; or the combinator has left the source, and `combinator` is `nil`.
            case .drop: notifyCombinator(of: core) { $0.inputWillNotCome($1) }
            case .destroy, .stop, .input: break
            }
        }
    }

    private static var laterCode: CoreCode {
        CoreCode { core, phase in
            if case .run = phase, bringsValueLater(core) {
                LoopRef.ofThisThread.borrow { $0.enqueueOwned(core.ref.job) }
            } else {
                code(core, phase)
            }
        }
    }

    /// Returns true, once, for a node that runs inline and has a value to bring in a job.
    private static func bringsValueLater(_ core: PromiseCore) -> Bool {
        let input = core.payload.pointer(to: Input.self)
        guard input.pointee.bringsValueLater, core.sourceWord.loadRelaxed().isFulfilled else { return false }
        input.pointee.bringsValueLater = false
        return true
    }

    @inline(__always)
    private static func notifyCombinator(of core: PromiseCore, _ body: (CombinatorCore, Int) -> Void) {
        let input = core.payload.take(Input.self)
        guard let combinator = input.combinator else { return }
        combinator.borrow { body($0, input.index) }
        combinator.release()
    }

    private func releaseCombinator() {
        core.payload.pointer(to: Input.self).pointee.combinator.take()?.release()
    }

    /// Withdraws from the source.
    /// - Returns: the source, to be cancelled if nothing else needs it; `nil` if it has settled.
    func leave() -> PromiseCore? {
        // Retained, because the list or queue may release the node during this call.
        let node = core.object
        // If taken, the ending loop has dropped the payload.
        guard !node.sourceWord.load().isTaken else { return nil }
        // Done first, so that dropping the operation notifies nobody.
        releaseCombinator()
        if let source = node.withdraw() { return source }
        // The node is queued.
        node.dropOperation()
        node.stopCounting()
        return nil
    }

    /// Withdraws from the source, which continues; its unhandled error is not reported.
    func detachFromSource() {
        let word = core.borrow { $0.sourceWord.load() }
        // The source stays alive until this thread runs its waiter: see `SourceWord`.
        if word.isWaiting { word.core.borrow { $0.annotate(.isDetached) } }
        _ = leave()
    }

    /// Withdraws from the source, and cancels it if no other handler waits for it.
    func withdrawAndCancel() {
        let isCancelled = core.borrow { node in
            let word = node.sourceWord.load()
            // The source is retained, because its resolvers may release it once claimed.
            return word.isWaiting && word.core.object.cancel(ifOnly: core)
        }
        guard isCancelled else { return withdrawAndCancelSlow() }
        releaseCombinator()
        SpareCores.releaseOrKeep(node: core)
    }

    @inline(never)
    private func withdrawAndCancelSlow() { leave()?.cancelUnlessWanted() }
}
