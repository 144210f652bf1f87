import Reactor
import ReactorLibc

// Settles a core, together with the files on attaching, delivering, adopting, the deinit and cancellation. Only
// `fulfill` is generic, since operations have stored the values as words.
//
// Threads:
// - Any thread may push a waiter onto a pending core's list, by CAS.
// - One party holds the right to settle: a child's operation, or the resolver that has won `claim`. Only that party
//   takes the list of waiters, so it may read the list before taking it. (Nodes are removed from a list on that party's
//   thread. From the list of an externally settled core, a thread that has not claimed the core may also remove nodes,
//   and keeps the claiming party waiting: see `LockedWaiters`.)
// - That party holds a reference to the core until it has notified all waiters.
// - A link is made, and its target settled, only on the thread of both cores' loop. (An operation without a loop that
//   has left its source is linked on the thread that withdrew it.) So two threads cannot build a cycle of links, and an
//   externally settled promise, which any thread may settle, is never linked.

extension PromiseCore {
    /// The core at the end of the links, which holds state and value for all cores linked to it. It lives as long as
    /// this core, since a link owns its root, and never changes.
    @usableFromInline
    var rootRef: CoreRef {
        var core = ref
        while true {
            let seen = core.borrow { $0.state.load() }
            guard seen.isLink else { return core }
            core = seen.root
        }
    }

    @usableFromInline
    var root: PromiseCore { rootRef.object }

    /// The core that holds the outcome, which lives as long as this one; `nil` while pending.
    @inlinable @inline(__always)
    package var settled: AnySource? { settled(state.load()) }

    /// Like `settled`, for a caller that has just loaded the state.
    @inlinable @inline(__always)
    func settled(_ seen: StateWord) -> AnySource? {
        if seen.isLink { return settledRoot }
        return seen.isPending ? nil : AnySource(ref, isFulfilled: seen.isFulfilled)
    }

    @usableFromInline @inline(never)
    var settledRoot: AnySource? { root.settled }

    /// Claims the right to settle this core, which several parties share.
    /// - Returns: false if another party has claimed it, or the core has settled.
    @usableFromInline
    package func claim() -> Bool {
        var seen = state.loadRelaxed()
        while seen.isClaimable {
            if state.tryToReplace(&seen, by: seen.claimed) { return true }
        }
        return false
    }

    @inlinable
    package func fulfill<Value>(_ value: consuming Value) {
        payload.store(value)
        settle(.fulfilled(isTrivial: CorePayload.isTrivial(Value.self)))
    }

    @usableFromInline
    package func reject(_ error: any Error) { reject(error, at: callSite) }

    /// Rejects with `error`, reported with `callSite` instead of this core's own.
    /// - Parameter outcome: `rejected`, or `rejectedAndHandled` if the error needs no handler.
    @inline(__always)
    func reject(_ error: any Error, at callSite: CallSite?, as outcome: StateWord = .rejected) {
        payload.storeError(error, at: callSite)
        settle(outcome)
    }

    /// Makes the stored payload this core's outcome, and notifies the waiters.
    ///
    /// Consumes a reference to the core. In the common case, a single waiter on this loop receives the reference, so
    /// nothing is retained.
    @usableFromInline
    func settleAndRelease(_ outcome: StateWord) {
        if settleAtOnce(outcome, passingReference: true) { return }
        if state.load().isLink { return settleRootAndRelease(outcome) }
        settleSlow(outcome)
        release()
    }

    /// Like `settleAndRelease`, but the caller keeps its reference, and waiters that receive the core retain it.
    @usableFromInline
    func settle(_ outcome: StateWord) {
        if settleAtOnce(outcome, passingReference: false) { return }
        if state.load().isLink { settleRoot(outcome) } else { settleSlow(outcome) }
    }

    /// Settles in the common cases: no waiter, or a lone handler of this thread.
    /// - Parameter passingReference: true to consume a reference to the core.
    /// - Returns: false, without any effect, in any other case.
    @inline(__always)
    private func settleAtOnce(_ outcome: StateWord, passingReference: Bool) -> Bool {
        let seen = state.load()
        guard seen.hasListToTake else { return false }
        guard let node = seen.waiters else {
            guard state.replace(seen, by: outcome) else { return false }
            if passingReference { release() }
            return true
        }
        let here = LoopRef.ofThisThread
        let isDone = node.borrow { waiter in
            guard waiter.isLoneHandler(of: address, here) else { return false }
            if passingReference && isUnshared(seen, here) {
                // This takes a fraction of an atomic exchange's time.
                state.store(outcome.handled)
            } else {
                if !passingReference { retain() }
                guard state.replace(seen, by: outcome.handled) else {
                    if !passingReference { release() }
                    return false
                }
            }
            waiter.sourceWord.store(.settled(address, as: outcome))
            return true
        }
        if isDone { here.borrow { $0.enqueueOwned(node.job) } }
        return isDone
    }

    /// Returns true when no other thread can change the state, or has changed it since `seen`: only the caller has a
    /// reference, and only the waiter, of this thread, knows the address.
    @inline(__always)
    private func isUnshared(_ seen: StateWord, _ here: LoopRef) -> Bool {
        role.isEmpty && loop.is(here) && isReferencedOnce && state.load() == seen
    }

    /// For the newest waiter of a list. Returns true when it is the only one, belongs to this thread, will be queued,
    /// receives the outcome, and has not been withdrawn.
    @inline(__always)
    private func isLoneHandler(of source: UInt, _ here: LoopRef) -> Bool {
        next == nil && loop.is(here) && sourceWord.loadRelaxed() == .waiting(forCoreAt: source)
            && role.isDisjoint(with: .slowlyNotified)
    }

    /// Settles in the other cases: several waiters, a waiter of another thread, or an inline waiter. The caller holds
    /// the core.
    @inline(never)
    private func settleSlow(_ outcome: StateWord) {
        while true {
            let seen = state.load()
            assert(seen.isPending, "a promise was settled twice")
            if seen.isLocked {
                sched_yield()
                continue
            }
            guard let newest = seen.waiters else {
                if state.replace(seen, by: outcome) { return }
                continue
            }
            if newest.borrow({ $0.isLoneWakeUp }) {
                // A `hang` receives no outcome, since it checks the promise itself.
                guard state.replace(seen, by: outcome) else { continue }
                deliver(.taken, toOwned: newest)
                return
            }
            // A later waiter must not overtake these on its own loop, so it stays in this list until all have been
            // notified.
            if state.replace(seen, by: outcome.settling) {
                return Delivery.deliverAll(outcome, of: self, to: newest.reverseInPlace())
            }
        }
    }

    /// Settles the root in place of this linked core, and releases this core.
    ///
    /// At the end of a recursion through `then` nothing else refers to this core. The root then consumes this core's
    /// reference to it, and this core is kept for reuse.
    @inline(never)
    private func settleRootAndRelease(_ outcome: StateWord) {
        let root = state.load().root
        let here = LoopRef.ofThisThread
        guard isOpen, SpareCores.canKeep(self, at: here), !root.borrow({ $0.state.load().isLink }) else {
            settleRoot(outcome)
            return release()
        }
        root.payload.move(from: payload)
        SpareCores.keepWithoutLink(self, at: here)
        root.borrow { $0.settleAndRelease(outcome) }
    }

    @inline(never)
    private func settleRoot(_ outcome: StateWord) {
        // Nothing is left for the deinit.
        sourceWord.store(.taken)
        // The root was cancelled, and this core's producer could not stop.
        guard isOpen else { return destroyUnusedOutcome(outcome) }
        // `root` follows all the links, of which there may be a million.
        let root = self.root
        // Any later result of the producer is ignored.
        state.markClaimed()
        root.payload.move(from: payload)
        root.retain()
        root.settleAndRelease(outcome)
    }

    private func destroyUnusedOutcome(_ outcome: StateWord) {
        if outcome.isRejected {
            _ = payload.takeError()
        } else if !outcome.isFulfilledTrivially {
            code(self, .destroy)
        }
    }

    /// For the newest waiter of a list: true when it is the only one and a `hang`, so that no other queues after it.
    private var isLoneWakeUp: Bool { next == nil && role.contains(.onlyWaking) }

    /// True when this waiter handles its source's rejection by receiving it.
    @inline(__always)
    var handles: Bool { !role.contains(.leavesUnhandled) }

    @usableFromInline
    package func markHandled() {
        let seen = state.loadRelaxed()
        if seen.isRejected && !seen.isHandled { state.markHandled() }
    }
}
