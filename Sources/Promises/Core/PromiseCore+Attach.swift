import Reactor

// Adds a waiter to a core's list, or schedules it at once if the core has settled. PromiseCore+Settle.swift says which
// thread may do what.

extension PromiseCore {
    /// Makes `waiter` run once this core has settled. If the waiter has a loop, which must be this thread's, it runs
    /// there, in the order of attaching; otherwise it runs inline.
    @usableFromInline
    func attach(_ waiter: PromiseCore) { attach(waiter, owned: .retaining(waiter)) }

    /// Attaches `waiter`. The list takes over `node`, a counted reference to the waiter.
    /// - Parameter passingReference: true to consume a reference to this core, for a waiter that is queued at once.
    @inline(__always)
    package func attach(_ waiter: PromiseCore, owned node: CoreRef, passingReference: Bool = false) {
        if attachAtOnce(waiter, node, passingReference: passingReference) { return }
        attachSlow(waiter, node)
        if passingReference { release() }
    }

    /// Attaches the waiter in the common cases.
    /// - Returns: false in any other case. The waiter is then in no list, but has been counted, unless its loop counts
    ///   no such waiter. It may be among the `CrossThreadWaiters`, and have `sourceWord` stored; `attachSlow` accepts
    ///   both.
    @inline(__always)
    private func attachAtOnce(_ waiter: PromiseCore, _ node: CoreRef, passingReference: Bool) -> Bool {
        var seen = state.load()
        if let loop = waiter.loop {
            // Watchers are rare: `attachSlow` adds them to the loop's table.
            if waiter.role.contains(.keepsNoWorkAlive) { return false }
            // See `mustJoinLoop`.
            if !waiter.role.contains(.onlyWaking) {
                waiter.marks.insert(.countsAsWaiting)
                loop.borrow { $0.handlerDidAttach() }
                if seen.isPending && isOutside(loop) && !waiter.joinLoop(node) { return false }
            }
        }
        waiter.sourceWord.store(.waiting(forCoreAt: address))
        if seen.isPending {
            let isPushed = push(waiter, node, &seen)
            if isPushed && passingReference { release() }
            return isPushed
        }
        guard seen.isFulfilledForAll && waiter.isQueuedByItsLoop else { return false }
        if !passingReference { retain() }
        scheduleAsFulfilled(waiter, node)
        return true
    }

    /// True when the node is a handler that this thread's loop queues once its source has settled.
    @inline(__always)
    private var isQueuedByItsLoop: Bool { loop != nil && role.isDisjoint(with: .slowlyNotified) }

    /// Queues a handler of this thread for this core, which is already fulfilled, like most writes. Consumes a
    /// reference to this core.
    @inline(never)
    private func scheduleAsFulfilled(_ waiter: PromiseCore, _ node: CoreRef) {
        // Checked by the caller: the waiter has a loop, which is this thread's.
        schedule(waiter, node, as: .fulfilled(isTrivial: false), on: waiter.loop.unsafelyUnwrapped)
    }

    /// Queues a waiter of this thread for this settled core. Consumes a reference to this core.
    @inline(__always)
    private func schedule(_ waiter: PromiseCore, _ node: CoreRef, as outcome: StateWord, on here: LoopRef) {
        waiter.sourceWord.store(.settled(address, as: outcome))
        here.borrow {
            // Other threads may have posted earlier outcomes, which this node must not overtake.
            $0.takeMail()
            $0.enqueueOwned(node.job)
        }
    }

    /// Tries once to make `waiter` the list's newest.
    @inline(__always)
    private func push(_ waiter: PromiseCore, _ node: CoreRef, _ seen: inout StateWord) -> Bool {
        waiter.nextWaiter = seen.waiters
        return state.push(waiterAt: node.address, &seen)
    }

    /// Attaches the waiter in the uncommon cases: the core has settled or is settling, or another thread has pushed at
    /// the same time.
    @inline(never)
    private func attachSlow(_ waiter: PromiseCore, _ node: CoreRef) {
        if mustJoinLoop(waiter), !waiter.joinLoopSlow(node) { return }
        var seen = state.load()
        waiter.sourceWord.store(.waiting(forCoreAt: address))
        while seen.takesWaiters {
            if push(waiter, node, &seen) { return }
        }
        precondition(!seen.isLink, "a linked promise, known to its producer only, has a waiter")
        notifyAtOnce(waiter, node, as: seen)
    }

    private func notifyAtOnce(_ waiter: PromiseCore, _ node: CoreRef, as outcome: StateWord) {
        let here = LoopRef.ofThisThread
        if waiter.handles { markHandled() }
        retain()
        guard waiter.runsInline(at: here) else { return schedule(waiter, node, as: outcome, on: here) }
        waiter.sourceWord.store(.settled(address, as: outcome))
        here.borrow { $0.jobs.runInline(node.job) }
    }
}

/// Attaches `waiter` to `source`, a promise without other uses, and consumes a reference to `source`.
// Not a static method, which would receive the class's metadata.
@usableFromInline
func attachWaiter(_ waiter: PromiseCore, consuming source: CoreRef) {
    source.borrow { $0.attach(waiter, owned: .retaining(waiter), passingReference: true) }
}

// A waiter's loop counts its waiting handlers, and when it ends must find those that another thread may post.

extension PromiseCore {
    /// Returns true when another thread may settle this core and then post a waiter to the loop at `home`.
    @inline(__always)
    private func isOutside(_ home: LoopRef) -> Bool { role.contains(.externallySettled) || loop != home }

    /// Returns true when another thread may post the waiter to its loop, where it has no place yet. The waiter of a
    /// `hang` needs none: it has captured nothing, and retains its loop.
    private func mustJoinLoop(_ waiter: PromiseCore) -> Bool {
        guard let loop = waiter.loop, !waiter.role.contains(.onlyWaking) else { return false }
        return isOutside(loop) && waiter.crossThreadNumber == 0
    }

    /// Notes this waiter in its loop; returns false if the table has no room.
    @inline(__always)
    private func joinLoop(_ node: CoreRef) -> Bool {
        crossThreadNumber = loop.unsafelyUnwrapped.borrow { $0.addCrossThreadWaiter(node.job) }
        return crossThreadNumber != 0
    }

    /// Notes this waiter in its loop.
    /// - Returns: false if the loop is ending; the waiter, and the reference in `node`, have then been discarded.
    private func joinLoopSlow(_ node: CoreRef) -> Bool {
        let here = loop.unsafelyUnwrapped
        if here.borrow({ $0.makeRoomForCrossThreadWaiter() }) { return joinLoop(node) }
        sourceWord.store(.none)
        here.borrow { $0.jobs.discard(node.job) }
        return false
    }

    /// Takes this waiter out of its loop's `CrossThreadWaiters`. It has arrived, or has been withdrawn, on that loop's
    /// thread, so no other thread will post it.
    @inline(__always)
    func leaveCrossThreadWaiters() {
        let number = crossThreadNumber
        guard number != 0, let loop else { return }
        let moved = CoreRef(loop.borrow { $0.removeCrossThreadWaiter(number) })
        moved.borrow { $0.crossThreadNumber = number }
        crossThreadNumber = 0
    }

    @inline(__always)
    func stopCounting() {
        guard marks.contains(.countsAsWaiting) else { return }
        marks.remove(.countsAsWaiting)
        // A counted waiter has a loop.
        loop.unsafelyUnwrapped.borrow { $0.handlerDidDetach() }
    }

    @inline(__always)
    func leaveLoop() {
        leaveCrossThreadWaiters()
        stopCounting()
    }
}
