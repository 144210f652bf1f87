import Reactor
import Synchronization

// How a core becomes another's equal.

extension PromiseCore {
    /// Settles this core, whose operation has run, as `inner` settles; if it has to wait for that, by `code`. Consumes a
    /// reference to this core.
    ///
    /// If it can, it links: `inner`'s producer then settles this core's root itself. Links lead to the root at once, so
    /// recursion through `then` has one level however long it runs, and each level's promises are freed as it goes.
    @usableFromInline
    func follow(_ inner: PromiseCore, by code: @escaping (PromiseCore, Phase) -> Void) {
        if Tracing.isOn { recordAdoption(of: inner) }
        let here = EventLoop.addressOfThisThread
        let root = unmanagedRoot
        guard isOpen else {
            // Cancelled while its operation ran: what that has returned is not wanted any more.
            inner.cancelIfUnobserved()
            return Unmanaged.passUnretained(self).release()
        }
        while true {
            let source = inner.unmanagedRoot
            // Only a core of this thread can be marked as forwarding, and few are.
            let mayWaitForUs = source._withUnsafeGuaranteedRef { $0.loop == here && $0.isAdopting }
            if source.toOpaque() == root.toOpaque() || mayWaitForUs && Self.forwards(root, to: source, here) {
                storeError(PromiseError.returnedSelf, nil)
                return settle(State.rejected)
            }
            let seen = source._withUnsafeGuaranteedRef { $0.state.load(ordering: .acquiring) }
            if seen & State.kindMask == State.link { continue }
            guard seen & State.kindMask == State.pending else {
                // No need to queue for what is known.
                source._withUnsafeGuaranteedRef { $0.markHandled() }
                let word = UInt(bitPattern: source.retain().toOpaque()) | seen & State.kindMask
                upstream.store(word, ordering: .relaxed)
                return code(self, .run)
            }
            // With waiters of its own it keeps them, and their order; what another thread may settle is not ours to link.
            let canLink =
                seen & (State.pointerMask | State.isBusy) == 0
                && source._withUnsafeGuaranteedRef { $0.loop == here && !$0.role.contains(.externallySettled) }
                && root._withUnsafeGuaranteedRef { $0.loop == here }
            guard canLink else { break }
            let link = UInt(bitPattern: root.retain().toOpaque()) | State.link | seen & State.isClaimed
            if source._withUnsafeGuaranteedRef({ $0.exchange(seen, link) }) {
                // Who settles `source` in its place settles the root from now on.
                let upstream = source._withUnsafeGuaranteedRef { $0.upstream.load(ordering: .relaxed) }
                let isAdopted = upstream & Upstream.mark == Upstream.adopted
                let word = isAdopted ? upstream : UInt(bitPattern: source.toOpaque()) | Upstream.adopted
                root._withUnsafeGuaranteedRef { $0.upstream.store(word, ordering: .relaxed) }
                // What `source` waited for, the root waits for from now on.
                if source._withUnsafeGuaranteedRef({ $0.isAdopting }) {
                    root._withUnsafeGuaranteedRef { $0.isAdopting = true }
                }
                return Unmanaged.passUnretained(self).release()
            }
            root.release()
        }
        // In the room that the operation has left.
        store(AdoptingWaiter(become: code))
        isAdopting = true
        // How it came to what its operation waited for says nothing of this.
        cameByLink = false
        // The root, to which only a core of this thread can be linked, so waits for `inner` too.
        root._withUnsafeGuaranteedRef { $0.isAdopting = true }
        inner.attach(self)
        Unmanaged.passUnretained(self).release()
    }

    /// Runs a node that forwards: its source has settled.
    func completeAdoption() {
        isAdopting = false
        take(AdoptingWaiter.self).become(self, .run)
    }

    /// The same for one that will never run.
    func dropFollower() {
        isAdopting = false
        _ = take(AdoptingWaiter.self)
    }

    /// Whether `target` waits for `root`, through others perhaps, to become as it is: then `root` must not wait for it.
    ///
    /// The right to settle `root` is ours, and all that follows it waits for that, so nothing leaves these lists now.
    private static func forwards(
        _ root: Unmanaged<PromiseCore>, to target: Unmanaged<PromiseCore>, _ here: UnsafeMutableRawPointer
    ) -> Bool {
        var followers = [root]
        while let next = followers.popLast() {
            var waiter = waiters(next._withUnsafeGuaranteedRef { $0.state.load(ordering: .acquiring) })
            while let node = waiter {
                waiter = node._withUnsafeGuaranteedRef { $0.next }
                let follower = core(node)
                guard follower.loop == here && follower.isAdopting else { continue }
                let end = follower.unmanagedRoot
                if end.toOpaque() == target.toOpaque() { return true }
                followers.append(end)
            }
        }
        return false
    }
}

/// What a core keeps whose operation has run, and which waits to become as another.
struct AdoptingWaiter {
    let become: (PromiseCore, PromiseCore.Phase) -> Void
}
