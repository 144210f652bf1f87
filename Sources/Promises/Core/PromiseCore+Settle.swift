import Reactor
import ReactorLibc

// Settling a core. This file, its neighbours on attaching, delivering, adopting and the deinit, and Cancellation are
// all of it. Only `fulfill` is generic, since operations have stored the values as words.
//
// Threads:
// - Any thread may push a waiter onto a pending core's list, by CAS.
// - One party holds the right to settle: the operation of a child, or the resolver that has won `claim`. Only that
//   party takes the list of waiters, so it may read the list before it takes it. (Nodes are removed from a list on that
//   party's thread. For an externally settled core, a thread that has not claimed it may do so too, and keeps the
//   claiming party waiting: see `LockedWaiters`.)
// - That party holds the core by a reference until it has notified all waiters.
// - A link is made, and its target settled, only on the thread of both cores' loop. (The link of an operation without a
//   loop, which has left its source, is made on the thread that has withdrawn it.) So two threads cannot build a cycle of
//   links, and an externally settled promise, which any thread may settle, is never linked.

extension PromiseCore {
    /// The core at the end of the links, which holds state and value for all cores linked to it. Lives as long as this
    /// core: a link owns its root, and never changes.
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

    /// The core with the outcome, which lives as long as this one; nil while pending.
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

    /// Claims the right to settle a core shared by several resolvers.
    /// - Returns: false if another one has claimed it already.
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

    /// Rejects with an error from another call site than this core's.
    /// - Parameter outcome: a rejection, already handled if the error needs no handler.
    @inline(__always)
    func reject(_ error: any Error, at callSite: CallSite?, as outcome: StateWord = .rejected) {
        payload.storeError(error, at: callSite)
        settle(outcome)
    }

    /// Makes the stored payload this core's outcome, and notifies the waiters.
    ///
    /// Consumes a reference to the core. A single waiter on this loop, the common case, receives it as its source, so
    /// that a hop retains nothing.
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

    /// The common cases: no waiter, or a lone handler of this thread.
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
                // A fraction of the time of an atomic exchange.
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

    /// True when no other thread can change the state after `seen`, or has changed it before it released the core: the
    /// caller's reference is the only one, and the waiter, which belongs to this thread, alone knows the address.
    @inline(__always)
    private func isUnshared(_ seen: StateWord, _ here: LoopRef) -> Bool {
        role.isEmpty && loop.is(here) && isReferencedOnce && state.load() == seen
    }

    /// For the newest waiter of a list: true when it is the only one, belongs to this thread, is queued and not run
    /// inline, receives the outcome, and has not been withdrawn.
    @inline(__always)
    private func isLoneHandler(of source: UInt, _ here: LoopRef) -> Bool {
        next == nil && loop.is(here) && sourceWord.loadRelaxed() == .waiting(forCoreAt: source)
            && role.isDisjoint(with: .slowlyNotified)
    }

    /// Several waiters, a waiter of another thread, or an inline waiter. The caller holds the core.
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
                // It receives no outcome, since it checks the promise itself.
                guard state.replace(seen, by: outcome) else { continue }
                deliver(.taken, toOwned: newest)
                return
            }
            // A later waiter must not overtake these on its own loop, so it queues here until all have been notified.
            if state.replace(seen, by: outcome.settling) {
                return Delivery.deliverAll(outcome, of: self, to: newest.reverseInPlace())
            }
        }
    }

    /// Settles the root in place of this linked core, and releases this core.
    ///
    /// At the end of a recursion through `then` nothing else refers to the core. Its reference to the root then settles
    /// the root, and the core is kept.
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
        // The root was cancelled, and the producer of this core could not stop.
        guard isOpen else { return destroyUnusedOutcome(outcome) }
        // There may be a million links on the way.
        let root = self.root
        // A later result of its producer is too late.
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

    /// For the newest waiter of a list: true when it is a `hang`, and the only waiter, so that no other queues after
    /// it.
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
