import Reactor
import Synchronization

// How a waiter gets into the list of a core, or past it if that has settled; see PromiseCore+Settle.swift for who may do what.

extension PromiseCore {
    /// Lets `waiter` run once this core has settled: on its own loop, which must be this thread's, in the order of
    /// attaching; or inline, if it has none.
    @usableFromInline
    func attach(_ waiter: PromiseCore) { attach(waiter, .passRetained(waiter)) }

    /// The same with a reference of the caller's to the waiter, which the list takes over.
    @inline(__always)
    func attach(_ waiter: PromiseCore, _ node: Unmanaged<Job>) {
        if let loop = waiter.loop, !waiter.role.contains(.onlyWatching) {
            waiter.countsAsWaiting = true
            Unmanaged<EventLoop>.fromOpaque(loop)._withUnsafeGuaranteedRef { $0.handlerDidAttach() }
        }
        waiter.upstream.store(address | Upstream.waiting, ordering: .relaxed)
        let seen = state.load(ordering: .acquiring)
        if seen & State.kindMask == State.pending && push(waiter, node, seen).done { return }
        attachSlow(waiter, node)
    }

    /// One try to make `waiter` the newest in a list whose state was `seen`.
    @inline(__always)
    private func push(_ waiter: PromiseCore, _ node: Unmanaged<Job>, _ seen: UInt) -> (done: Bool, now: UInt) {
        waiter.next = Self.waiters(seen)
        let word = UInt(bitPattern: node.toOpaque()) | seen & ~State.pointerMask
        let (done, now) = state.compareExchange(
            expected: seen, desired: word, successOrdering: .releasing, failureOrdering: .acquiring)
        return (done, now)
    }

    /// The cases beside the common one: a core that has settled, or is doing so, or is linked; another thread's push.
    @inline(never)
    private func attachSlow(_ waiter: PromiseCore, _ node: Unmanaged<Job>) {
        let here = EventLoop.unmanagedOfThisThread
        var seen = state.load(ordering: .acquiring)
        waiter.upstream.store(address | Upstream.waiting, ordering: .relaxed)
        while true {
            let kind = seen & State.kindMask
            guard kind == State.pending || kind != State.link && seen & State.isSettling != 0 else { break }
            let (done, now) = push(waiter, node, seen)
            if done { return }
            seen = now
        }
        if seen & State.kindMask == State.link { return attachToRoot(waiter, node, here) }
        if !waiter.role.contains(.onlyWatching) { markHandled() }
        retain()
        waiter.upstream.store(address | seen & State.kindMask, ordering: .relaxed)
        if waiter.loop == nil || waiter.role.contains(.inlineAtHome) {
            return here._withUnsafeGuaranteedRef { $0.runInline(node) }
        }
        here._withUnsafeGuaranteedRef {
            // What another thread has posted to us was settled before: it must not be overtaken.
            $0.takeMail()
            $0.enqueueOwned(node)
        }
    }

    private func attachToRoot(_ waiter: PromiseCore, _ node: Unmanaged<Job>, _ here: Unmanaged<EventLoop>) {
        let root = root
        waiter.cameByLink = true
        guard root === PromiseCore.never else { return root.attachSlow(waiter, node) }
        // Nobody will ever settle it: the handler is let go at once.
        let never = UInt(bitPattern: Unmanaged.passRetained(root).toOpaque()) | Upstream.abandoned
        waiter.upstream.store(never, ordering: .relaxed)
        here._withUnsafeGuaranteedRef { $0.runInline(node) }
    }

    /// A rejection that somebody has been told of is not reported when it dies.
    @usableFromInline
    func markHandled() {
        let seen = state.load(ordering: .relaxed)
        guard seen & (State.kindMask | State.isHandled) == State.rejected else { return }
        state.bitwiseOr(State.isHandled, ordering: .relaxed)
    }
}
