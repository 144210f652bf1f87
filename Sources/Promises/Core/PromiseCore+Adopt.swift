import Reactor
import Synchronization

// How a core adopts the outcome of another.

extension PromiseCore {
    /// Settles this core, whose operation has run, as `inner` settles. If the core has to wait for that, `code` settles
    /// it. Consumes a reference to this core.
    ///
    /// Where possible, the core links `inner`: `inner`'s producer then settles this core's root itself. A link points
    /// to the root directly, so recursion through `then` has one level however long it runs, and each level's promises
    /// are freed as it goes.
    @usableFromInline
    func follow(_ inner: PromiseCore, by code: @escaping (PromiseCore, Phase) -> Void) {
        let here = EventLoop.addressOfThisThread
        if !linkAtOnce(inner, here) { followSlow(inner, by: code) }
    }

    /// The usual case of `follow`: `inner` is a promise of this thread that has just been made, waits for something
    /// else, and that nothing has been attached to. The core's root is pending, and of this thread too.
    /// - Returns: false if `inner` is not such a promise, and then nothing has changed.
    @inline(__always)
    private func linkAtOnce(_ inner: PromiseCore, _ here: UnsafeMutableRawPointer) -> Bool {
        let own = state.load(ordering: .acquiring)
        // Without a mark: it is neither claimed nor busy, and has no waiters.
        guard !Tracing.isOn, inner.state.load(ordering: .acquiring) == State.pending,
            inner.loop == here, !inner.isAdopting, !inner.role.contains(.externallySettled)
        else { return false }
        let kind = own & (State.kindMask | State.isClaimed)
        if kind == State.pending {
            guard inner !== self && loop == here && inner.link(toRoot: self) else { return false }
            Unmanaged.passUnretained(self).release()
            return true
        }
        guard kind == State.link else { return false }
        return Unmanaged<PromiseCore>.fromOpaque(UnsafeRawPointer(bitPattern: own & State.pointerMask)!)
            ._withUnsafeGuaranteedRef { root in
                let seen = root.state.load(ordering: .acquiring)
                guard seen & State.kindMask == State.pending && inner !== root && root.loop == here else {
                    return false
                }
                if isSpareLink(here) {
                    // Nothing else refers to this core: its link, with the reference to the root, becomes that of `inner`.
                    guard inner.exchange(State.pending, own) else { return false }
                    root.waitForSource(of: inner)
                    keepWithoutLink(here)
                } else {
                    guard inner.link(toRoot: root) else { return false }
                    Unmanaged.passUnretained(self).release()
                }
                return true
            }
    }

    /// Makes this core, which was pending without a waiter, a link to `root`.
    @inline(__always)
    private func link(toRoot root: PromiseCore) -> Bool {
        let link = UInt(bitPattern: Unmanaged.passRetained(root).toOpaque()) | State.link
        guard exchange(State.pending, link) else {
            Unmanaged.passUnretained(root).release()
            return false
        }
        root.waitForSource(of: self)
        return true
    }

    /// Called on a root to which `inner` has been linked: it now waits for the promise that `inner` waited for.
    @inline(__always)
    private func waitForSource(of inner: PromiseCore) {
        let word = inner.upstream.load(ordering: .relaxed)
        let isAdopted = word & Upstream.mark == Upstream.adopted
        upstream.store(isAdopted ? word : inner.address | Upstream.adopted, ordering: .relaxed)
    }

    @inline(never)
    private func followSlow(_ inner: PromiseCore, by code: @escaping (PromiseCore, Phase) -> Void) {
        if Tracing.isOn { recordAdoption(of: inner) }
        let here = EventLoop.addressOfThisThread
        let root = unmanagedRoot
        guard isOpen else {
            // Cancelled while its operation ran: the promise that the operation returned is no longer wanted.
            inner.cancelIfUnobserved()
            return Unmanaged.passUnretained(self).release()
        }
        while true {
            let source = inner.unmanagedRoot
            // Only a core of this thread can be marked as adopting, and few are.
            let mayWaitForUs = source._withUnsafeGuaranteedRef { $0.loop == here && $0.isAdopting }
            if source.toOpaque() == root.toOpaque() || mayWaitForUs && Self.adoptionLeads(from: root, to: source, here)
            {
                storeError(PromiseError.returnedSelf, nil)
                return settle(State.rejected)
            }
            let seen = source._withUnsafeGuaranteedRef { $0.state.load(ordering: .acquiring) }
            if seen & State.kindMask == State.link { continue }
            guard seen & State.kindMask == State.pending else {
                // The outcome is known: no need to queue.
                inner.markHandled()
                let word = UInt(bitPattern: source.retain().toOpaque()) | seen & State.kindMask
                upstream.store(word, ordering: .relaxed)
                return code(self, .run)
            }
            // A core with waiters of its own keeps them, and their order. A core that another thread may settle cannot
            // be linked from here.
            let canLink =
                seen & (State.pointerMask | State.isBusy) == 0
                && source._withUnsafeGuaranteedRef { $0.loop == here && !$0.role.contains(.externallySettled) }
                && root._withUnsafeGuaranteedRef { $0.loop == here }
            guard canLink else { break }
            let link = UInt(bitPattern: root.retain().toOpaque()) | State.link | seen & State.isClaimed
            if source._withUnsafeGuaranteedRef({ $0.exchange(seen, link) }) {
                // The producer of `source` settles the root from now on.
                let upstream = source._withUnsafeGuaranteedRef { $0.upstream.load(ordering: .relaxed) }
                let isAdopted = upstream & Upstream.mark == Upstream.adopted
                let word = isAdopted ? upstream : UInt(bitPattern: source.toOpaque()) | Upstream.adopted
                root._withUnsafeGuaranteedRef { $0.upstream.store(word, ordering: .relaxed) }
                // The root now waits for the promise that `source` waited for.
                if source._withUnsafeGuaranteedRef({ $0.isAdopting }) {
                    root._withUnsafeGuaranteedRef { $0.isAdopting = true }
                }
                return Unmanaged.passUnretained(self).release()
            }
            root.release()
        }
        // In the memory that the operation has left.
        store(AdoptingWaiter(become: code))
        isAdopting = true
        // How it was attached to its operation's source does not matter for this wait.
        cameByLink = false
        // Only a core of this thread can be linked to the root, so the root waits for `inner` too.
        root._withUnsafeGuaranteedRef { $0.isAdopting = true }
        inner.attach(self)
        Unmanaged.passUnretained(self).release()
    }

    /// Runs a node that is adopting: its source has settled.
    func completeAdoption() {
        isAdopting = false
        take(AdoptingWaiter.self).become(self, .run)
    }

    /// Drops the adoption of a node that will never run.
    func dropAdoption() {
        isAdopting = false
        _ = take(AdoptingWaiter.self)
    }

    /// Whether `target` waits for `root`, perhaps through other cores, to adopt its outcome: then `root` must not wait
    /// for it.
    ///
    /// This thread holds the right to settle `root`, and everything that adopts it waits for that, so no node leaves
    /// these lists now.
    private static func adoptionLeads(
        from root: Unmanaged<PromiseCore>, to target: Unmanaged<PromiseCore>, _ here: UnsafeMutableRawPointer
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

/// The payload of a core whose operation has run, and which waits to adopt the outcome of another core.
struct AdoptingWaiter {
    let become: (PromiseCore, PromiseCore.Phase) -> Void
}
