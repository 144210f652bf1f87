import Reactor

// Adopting the outcome of another core.

extension PromiseCore {
    /// Settles this core as the promise that `next` makes.
    ///
    /// A closure makes it, so that here only `follow` has a reference to it, in debug builds too: how the promise is
    /// followed depends on whether others refer to it.
    @inlinable @inline(__always)
    package func finish<Next: Thenable>(following next: @autoclosure () throws -> Next) rethrows {
        finish(followingOwned: CoreRef.retaining(try next().asPromise().core), as: Next.T.self)
    }

    /// Settles this core as `inner` settles. For a guarantee, which cannot report a cycle as an error.
    @inlinable @inline(__always)
    func finish<Value>(followingGuarantee next: @autoclosure () -> Guarantee<Value>) {
        finish(following: checked(next()))
    }

    @inlinable @inline(__always)
    func checked<Value>(_ next: consuming Guarantee<Value>) -> Guarantee<Value> {
        precondition(next.core !== root, "a handler returned its own guarantee, which would then wait for itself")
        return next
    }

    /// Settles this core, whose operation has run, as `inner` settles. If the core must wait, `adopt` settles it: the code
    /// of an operation that passes on the outcome of its source, and nothing else. Consumes a reference to this core, and
    /// one to `inner`, which must be the caller's last.
    ///
    /// If possible, `inner` is linked: its producer then settles this core's root itself. A link points to the root
    /// directly, so recursion through `then` has one level however long it runs, and each level's promises are freed as
    /// it goes.
    ///
    /// The two then are one promise, with one outcome, and cancelling one cancels the other. So only a promise is
    /// linked that no other code can read, or attach to: see `isKnownToProducerOnly`.
    @usableFromInline
    func follow(owned inner: CoreRef, by adopt: @escaping (PromiseCore) -> Void) {
        if !linkAtOnce(inner, .ofThisThread) { followSlow(inner, by: adopt) }
    }

    /// The usual case of `follow`: `inner` is a new promise of this thread that waits for something else. The core's
    /// root is pending, and also belongs to this thread.
    /// - Returns: false, without any effect, if `inner` is not such a promise.
    @inline(__always)
    private func linkAtOnce(_ inner: CoreRef, _ here: LoopRef) -> Bool {
        let own = state.load()
        // A state of exactly `.pending`: not claimed, not locked, no waiters. `marks` last, since they may be read only once
        // it is known to belong to this thread. With `.hasHadNextStep` it may wait for this core, which `followSlow` finds out.
        guard !Tracing.isOn, own.isOpen, inner.borrow({ $0.state.load() == .pending }),
            Self.isKnownToProducerOnly(inner, here), inner.borrow({ !$0.marks.contains(.hasHadNextStep) })
        else { return false }
        if own.isPending {
            // The running reference becomes the link's.
            guard inner != ref && loop.is(here),
                inner.borrow({ $0.state.replace(.pending, by: .link(toAddress: address)) })
            else { return false }
            inner.borrow { didLink(from: $0) }
            inner.release()
            return true
        }
        return own.root.borrow { root in
            guard root.state.load().isPending && inner != own.root && root.loop.is(here) else { return false }
            if SpareCores.canKeep(self, at: here) {
                // Nothing else refers to this core: its link, with the reference to the root, becomes `inner`'s.
                guard inner.borrow({ $0.state.replace(.pending, by: own) }) else { return false }
                inner.borrow { root.didLink(from: $0) }
                SpareCores.keepWithoutLink(self, at: here)
            } else {
                guard inner.borrow({ $0.link(to: root, from: .pending) }) else { return false }
                release()
            }
            inner.release()
            return true
        }
    }

    /// Returns true when only the caller, which has one reference, and its producer know a promise: nobody else can read its
    /// outcome, attach a handler, or cancel it. On the thread at `here`, to which it must belong.
    ///
    /// The producer of a pending promise holds one reference; a combinator's holds one per pending source, and the timer
    /// of `timeout` another one: so the promises of `timeout`, and of several pending sources, are not linked. Nothing that
    /// runs on this thread releases it meanwhile.
    @inline(__always)
    private static func isKnownToProducerOnly(_ inner: CoreRef, _ here: LoopRef) -> Bool {
        // The count before the annotations: another thread may have made one before it released the core.
        inner.borrow { $0.loop.is(here) && !$0.role.contains(.externallySettled) } && inner.referenceCount == 2
            && inner.borrow { $0.shared.annotations.isDisjoint(with: .ofUnlinked) }
    }

    /// Makes this core, which was pending without a waiter, a link to `root`. Its producer settles the root from now
    /// on.
    /// - Returns: false, without any effect, if the state is no longer `seen`.
    @inline(__always)
    func link(to root: PromiseCore, from seen: StateWord) -> Bool {
        let link = StateWord.link(toAddress: CoreRef.retaining(root).address).marked(asIn: seen)
        guard state.replace(seen, by: link) else {
            root.release()
            return false
        }
        root.didLink(from: self)
        if marks.contains(.hasHadNextStep) { root.marks.insert(.hasHadNextStep) }
        return true
    }

    /// Notes that `inner` has been linked to this root, and settles it from now on.
    @inline(__always)
    private func didLink(from inner: PromiseCore) {
        let word = inner.sourceWord.loadRelaxed()
        sourceWord.store(word.isLinkedFrom ? word : .linkedFrom(inner.address))
    }

    /// The other cases. A circle is found before anything waits for `inner`, and a link, which leaves no waiter, is tried
    /// before a waiter.
    @inline(never)
    private func followSlow(_ inner: CoreRef, by adopt: @escaping (PromiseCore) -> Void) {
        defer { inner.release() }
        if Tracing.isOn { inner.borrow { Tracing.adopt(self, $0) } }
        let here = LoopRef.ofThisThread
        let root = rootRef

        // Cancelled while its operation ran: the promise that the operation returned is no longer wanted.
        guard isOpen else {
            inner.borrow { $0.cancelUnlessWanted() }
            return release()
        }

        // A circle. Only a core of this thread can wait for the root, and few have had a next step.
        let mayWaitForUs = inner.borrow { $0.loop == here && $0.marks.contains(.hasHadNextStep) }
        if inner == root || mayWaitForUs && Self.adoptionLeads(from: root, to: inner, here) {
            payload.storeError(PromiseError.returnedSelf, at: nil)
            return settleAndRelease(.rejected)
        }

        // Settled: no need to queue.
        let seen = inner.borrow { $0.state.load() }
        assert(!seen.isLink, "a linked promise, known to its producer only, was returned")
        guard seen.isPending else {
            inner.borrow { $0.markHandled() }
            inner.retain()
            sourceWord.store(.settled(inner.address, as: seen))
            return adopt(self)
        }

        // Linked, unless it has waiters, which keep their order, or another thread may settle it, or has just attached a
        // waiter, and released it.
        if seen.waiters == nil && !seen.isLocked && root.borrow({ $0.loop == here }),
            Self.isKnownToProducerOnly(inner, here),
            root.borrow({ root in inner.borrow { $0.link(to: root, from: seen) } })
        {
            return release()
        }

        // In place of this core, its only adopter waits.
        if let adopter = takeSoleAdopter(root, here) {
            adopter.borrow { adopter in
                adopter.leaveLoop()
                inner.borrow { $0.attach(adopter, owned: adopter.ref) }
            }
            return release()
        }

        inner.borrow { wait(for: $0, then: adopt) }
    }

    /// The waiter of this core's root, if it waits to adopt the root's outcome, or to be rejected after that, and nothing
    /// else knows the root or this core. It is taken out of the list, with the list's reference, and can adopt `inner` in
    /// this core's place.
    ///
    /// So a recursion takes constant memory even if its promises are not linked because a variable refers to each of
    /// them, as in `current = step(); return current`: a level that is replaced in the variable leaves the chain of
    /// waiters.
    private func takeSoleAdopter(_ root: CoreRef, _ here: LoopRef) -> CoreRef? {
        guard !Tracing.isOn, ref.referenceCount == 1, root == ref || root.referenceCount == 1 else { return nil }
        return root.borrow { root in
            let seen = root.state.load()
            guard seen.hasListToTake, root.shared.annotations.isEmpty,
                let node = seen.waiters, node.next == nil,
                node.borrow({
                    $0.loop == here && $0.marks.contains(.hasNextStep)
                        && $0.sourceWord.loadRelaxed() == .waiting(forCoreAt: root.address)
                }), root.state.replace(seen, by: seen.withoutWaiters)
            else { return nil }
            return node
        }
    }

    /// Returns true when `target` waits for `root` with a next step, perhaps through other cores. Then `root` must not wait
    /// for it.
    ///
    /// This thread holds the right to settle `root`, and all that has such a step waits for that, so no node leaves these
    /// lists now.
    private static func adoptionLeads(from root: CoreRef, to target: CoreRef, _ here: LoopRef) -> Bool {
        var rest = [root]
        while let next = rest.popLast() {
            var waiter = next.borrow { $0.state.load().waiters }
            while let node = waiter {
                waiter = node.next
                let end = node.borrow { $0.loop == here && $0.marks.contains(.hasNextStep) ? $0.rootRef : nil }
                guard let end else { continue }
                if end == target { return true }
                rest.append(end)
            }
        }
        return false
    }
}
