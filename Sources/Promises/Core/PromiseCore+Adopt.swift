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
    func follow(_ inner: PromiseCore, by code: @escaping (PromiseCore, CorePhase) -> Void) {
        if !linkAtOnce(inner, .ofThisThread) { followSlow(inner, by: code) }
    }

    /// The usual case of `follow`: `inner` is a promise of this thread that has just been made, waits for something
    /// else, and that nothing has been attached to. The core's root is pending, and of this thread too.
    /// - Returns: false if `inner` is not such a promise, and then nothing has changed.
    @inline(__always)
    private func linkAtOnce(_ inner: PromiseCore, _ here: LoopRef) -> Bool {
        let own = state.load()
        // Without a mark: it is neither claimed nor locked, and has no waiters.
        guard !Tracing.isOn, inner.state.load() == .pending, inner.loop.is(here), !inner.marks.contains(.isAdopting),
            !inner.role.contains(.externallySettled), own.isOpen
        else { return false }
        if own.isPending {
            // The running reference becomes that of the link.
            guard inner !== self && loop.is(here),
                inner.state.replace(.pending, by: .link(toAddress: address))
            else { return false }
            waitForSource(of: inner)
            return true
        }
        return own.root.borrow { root in
            guard root.state.load().isPending && inner !== root && root.loop.is(here) else { return false }
            if SpareCores.canKeepLink(self, at: here) {
                // Nothing else refers to this core: its link, with the reference to the root, becomes that of `inner`.
                guard inner.state.replace(.pending, by: own) else { return false }
                root.waitForSource(of: inner)
                SpareCores.keepWithoutLink(self, at: here)
            } else {
                guard inner.link(to: root, from: .pending) else { return false }
                release()
            }
            return true
        }
    }

    /// Makes this core, which was pending without a waiter, a link to `root`. Its producer settles the root from now on.
    /// - Returns: false if the state is no longer `seen`, without any effect.
    @inline(__always)
    private func link(to root: PromiseCore, from seen: StateWord) -> Bool {
        let link = StateWord.link(toAddress: CoreRef.retaining(root).address).claimed(asIn: seen)
        guard state.replace(seen, by: link) else {
            root.release()
            return false
        }
        root.waitForSource(of: self)
        return true
    }

    /// Called on a root to which `inner` has been linked: it now waits for the promise that `inner` waited for.
    @inline(__always)
    private func waitForSource(of inner: PromiseCore) {
        let word = inner.upstream.loadRelaxed()
        upstream.store(word.isLinkedFrom ? word : .linkedFrom(inner.address))
    }

    @inline(never)
    private func followSlow(_ inner: PromiseCore, by code: @escaping (PromiseCore, CorePhase) -> Void) {
        if Tracing.isOn { Tracing.adopt(self, inner) }
        let here = LoopRef.ofThisThread
        let root = root
        guard isOpen else {
            // Cancelled while its operation ran: the promise that the operation returned is no longer wanted.
            inner.cancelIfUnobserved()
            return release()
        }
        while true {
            let source = inner.root
            // Only a core of this thread can be marked as adopting, and few are.
            let mayWaitForUs = source.loop == here && source.marks.contains(.isAdopting)
            if source === root || mayWaitForUs && Self.adoptionLeads(from: root, to: source, here) {
                payload.storeError(PromiseError.returnedSelf, at: nil)
                return settle(.rejected)
            }
            let seen = source.state.load()
            if seen.isLink { continue }
            guard seen.isPending else {
                // The outcome is known: no need to queue.
                inner.markHandled()
                source.retain()
                upstream.store(.settled(source.address, as: seen))
                return code(self, .run)
            }
            // A core with waiters of its own keeps them, and their order. A core that another thread may settle cannot
            // be linked from here.
            guard seen.waiters == nil && !seen.isLocked && source.loop == here && root.loop == here,
                !source.role.contains(.externallySettled)
            else { break }
            if source.link(to: root, from: seen) {
                if source.marks.contains(.isAdopting) { root.marks.insert(.isAdopting) }
                return release()
            }
        }
        // In the memory that the operation has left.
        continueBy(AfterOperation(run: code))
        // How it was attached to its operation's source does not matter for this wait.
        isAttachedThroughLink = false
        // Only a core of this thread can be linked to the root, so the root waits for `inner` too.
        root.marks.insert(.isAdopting)
        inner.attach(self)
        release()
    }

    /// Puts what this core does next in the place of its operation.
    func continueBy(_ next: AfterOperation) {
        payload.store(next)
        marks.insert(.isAdopting)
    }

    /// Runs a node that is adopting: its source has settled.
    func completeAdoption() {
        marks.remove(.isAdopting)
        payload.take(AfterOperation.self).run(self, .run)
    }

    /// Drops the adoption of a node that will never run.
    func dropAdoption() {
        marks.remove(.isAdopting)
        _ = payload.take(AfterOperation.self)
    }

    /// Whether `target` waits for `root`, perhaps through other cores, to adopt its outcome: then `root` must not wait
    /// for it.
    ///
    /// This thread holds the right to settle `root`, and everything that adopts it waits for that, so no node leaves
    /// these lists now.
    private static func adoptionLeads(from root: PromiseCore, to target: PromiseCore, _ here: LoopRef) -> Bool {
        var rest = [root.ref]
        while let next = rest.popLast() {
            var waiter = next.borrow { $0.state.load().waiters }
            while let node = waiter {
                waiter = node.next
                let end = node.borrow { $0.loop == here && $0.marks.contains(.isAdopting) ? $0.rootRef : nil }
                guard let end else { continue }
                if end == target.ref { return true }
                rest.append(end)
            }
        }
        return false
    }
}

/// The payload of a core whose operation has run, and which waits to adopt the outcome of another core.
struct AfterOperation {
    let run: (PromiseCore, CorePhase) -> Void
}
