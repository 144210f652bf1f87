import Reactor
import Synchronization

// How a waiter is added to the list of a core, or scheduled at once if the core has settled. PromiseCore+Settle.swift
// says which thread may do what.

extension PromiseCore {
    /// Makes `waiter` run once this core has settled. If the waiter has a loop, which must be this thread's, it runs
    /// there, in the order of attaching; otherwise it runs inline.
    @usableFromInline
    func attach(_ waiter: PromiseCore) { attach(waiter, .passRetained(waiter)) }

    /// Attaches `waiter`. The list takes over `node`, the caller's reference to the waiter.
    @inline(__always)
    func attach(_ waiter: PromiseCore, _ node: Unmanaged<Job>) {
        let seen = state.load(ordering: .acquiring)
        if let loop = waiter.loop {
            if waiter.role.contains(.onlyWatching) {
                if !waiter.role.contains(.onlyWaking) { return attachSlow(waiter, node) }
            } else {
                waiter.countsAsWaiting = true
                Unmanaged<EventLoop>.fromOpaque(loop)._withUnsafeGuaranteedRef { $0.handlerDidAttach() }
                if seen & State.kindMask == State.pending && isOutside(loop) && !waiter.joinLoop(node) {
                    return attachSlow(waiter, node)
                }
            }
        }
        waiter.upstream.store(address | Upstream.waiting, ordering: .relaxed)
        if seen & State.kindMask == State.pending {
            if push(waiter, node, seen).done { return }
        } else if seen & (State.kindMask | State.isSettling) == State.fulfilled && waiter.isQueuedByItsLoop {
            return attachToFulfilled(waiter, node)
        }
        attachSlow(waiter, node)
    }

    /// Whether the node, once its source has settled, is queued on its loop, which is this thread's, and is a handler.
    @inline(__always)
    private var isQueuedByItsLoop: Bool { loop != nil && role.isDisjoint(with: .unusual) }

    /// A handler of this thread is attached to a core that is already fulfilled, such as most writes.
    @inline(never)
    private func attachToFulfilled(_ waiter: PromiseCore, _ node: Unmanaged<Job>) {
        retain()
        waiter.upstream.store(address | Upstream.fulfilled, ordering: .relaxed)
        // Checked by the caller: the waiter has a loop, which is this thread's.
        Unmanaged<EventLoop>.fromOpaque(waiter.loop.unsafelyUnwrapped)._withUnsafeGuaranteedRef {
            // Other threads may have posted outcomes that were settled before: this node must not overtake them.
            $0.takeMail()
            $0.enqueueOwned(node)
        }
    }

    /// Whether another thread may settle this core and then post a waiter that belongs to the loop at `home`. The loop must
    /// find such a waiter when it ends.
    @inline(__always)
    private func isOutside(_ home: UnsafeMutableRawPointer) -> Bool {
        role.contains(.externallySettled) || loop != home
    }

    /// Notes this waiter in its loop, if that has room.
    @inline(__always)
    private func joinLoop(_ node: Unmanaged<Job>) -> Bool {
        // Checked by the caller: there is a loop.
        outsideNumber = Unmanaged<EventLoop>.fromOpaque(loop.unsafelyUnwrapped)._withUnsafeGuaranteedRef {
            $0.addOutsideWaiter(node)
        }
        return outsideNumber != 0
    }

    /// Notes this waiter in its loop.
    /// - Returns: false if the loop is ending; the waiter has been discarded, with the reference in `node`.
    private func joinLoopSlow(_ node: Unmanaged<Job>) -> Bool {
        let here = Unmanaged<EventLoop>.fromOpaque(loop.unsafelyUnwrapped)
        if here._withUnsafeGuaranteedRef({ $0.makeRoomForOutsideWaiter() }) { return joinLoop(node) }
        let never = UInt(bitPattern: Unmanaged.passRetained(PromiseCore.never).toOpaque()) | Upstream.abandoned
        upstream.store(never, ordering: .relaxed)
        here._withUnsafeGuaranteedRef { $0.discard(node) }
        return false
    }

    /// Takes this waiter, which has a number, out of the `OutsideWaiters` of its loop.
    @inline(__always)
    func leaveOutside(_ loop: UnsafeMutableRawPointer) {
        let number = outsideNumber
        let moved = Unmanaged<EventLoop>.fromOpaque(loop)._withUnsafeGuaranteedRef { $0.removeOutsideWaiter(number) }
        Self.core(moved).outsideNumber = number
        outsideNumber = 0
    }

    /// Tries once to make `waiter` the newest in a list whose state was `seen`.
    @inline(__always)
    private func push(_ waiter: PromiseCore, _ node: Unmanaged<Job>, _ seen: UInt) -> (done: Bool, now: UInt) {
        waiter.next = Self.waiters(seen)
        let word = UInt(bitPattern: node.toOpaque()) | seen & ~State.pointerMask
        let (done, now) = state.compareExchange(
            expected: seen, desired: word, successOrdering: .releasing, failureOrdering: .acquiring)
        return (done, now)
    }

    /// The uncommon cases: the core has settled, is settling, or is linked; another thread has pushed at the same time.
    @inline(never)
    private func attachSlow(_ waiter: PromiseCore, _ node: Unmanaged<Job>) {
        // A `hang` has captured nothing, and retains its loop.
        if let loop = waiter.loop, isOutside(loop), waiter.outsideNumber == 0, !waiter.role.contains(.onlyWaking),
            !waiter.joinLoopSlow(node)
        {
            return
        }
        var seen = state.load(ordering: .acquiring)
        waiter.upstream.store(address | Upstream.waiting, ordering: .relaxed)
        while true {
            let kind = seen & State.kindMask
            guard kind == State.pending || kind != State.link && seen & State.isSettling != 0 else { break }
            let (done, now) = push(waiter, node, seen)
            if done { return }
            seen = now
        }
        let here = EventLoop.unmanagedOfThisThread
        if seen & State.kindMask == State.link { return attachToRoot(waiter, node, here) }
        if waiter.handles { markHandled() }
        retain()
        waiter.upstream.store(address | seen & State.kindMask, ordering: .relaxed)
        if waiter.loop == nil || waiter.role.contains(.inlineAtHome) {
            return here._withUnsafeGuaranteedRef { $0.runInline(node) }
        }
        here._withUnsafeGuaranteedRef {
            // Other threads may have posted outcomes that were settled before: this node must not overtake them.
            $0.takeMail()
            $0.enqueueOwned(node)
        }
    }

    private func attachToRoot(_ waiter: PromiseCore, _ node: Unmanaged<Job>, _ here: Unmanaged<EventLoop>) {
        let root = root
        waiter.cameByLink = true
        guard root === PromiseCore.never else { return root.attachSlow(waiter, node) }
        // The root will never be settled: the handler is released at once.
        let never = UInt(bitPattern: Unmanaged.passRetained(root).toOpaque()) | Upstream.abandoned
        waiter.upstream.store(never, ordering: .relaxed)
        here._withUnsafeGuaranteedRef { $0.runInline(node) }
    }

    /// Whether this waiter, when it receives a rejection, handles the rejection of its source. One that was attached through
    /// a promise that another handler has returned does not: the promise of that handler needs a handler of its own.
    @inline(__always)
    var handles: Bool { !role.contains(.onlyWatching) && !cameByLink }

    /// Marks a rejection as handled: it is not reported when this core is released. Nothing happens if the core has been
    /// linked; see `handles`.
    @usableFromInline
    func markHandled() {
        let seen = state.load(ordering: .relaxed)
        guard seen & (State.kindMask | State.isHandled) == State.rejected else { return }
        state.bitwiseOr(State.isHandled, ordering: .relaxed)
    }
}
