import Reactor

// Adopting the outcome of another core.

extension PromiseCore {
    /// Settles this core as the promise that `next` makes settles.
    ///
    /// A closure makes the promise, so that here only `follow` refers to it, in debug builds too: how it is followed
    /// depends on other references.
    @inlinable @inline(__always)
    package func finish<Next: Thenable>(following next: @autoclosure () throws -> Next) rethrows {
        finish(followingOwned: CoreRef.retaining(try next().asPromise().core), as: Next.T.self)
    }

    /// Settles this core as `inner` settles. Traps at a circle, which a guarantee cannot report as an error.
    @inlinable @inline(__always)
    func finish<Value>(followingGuarantee next: @autoclosure () -> Guarantee<Value>) {
        finish(following: checked(next()))
    }

    @inlinable @inline(__always)
    func checked<Value>(_ next: consuming Guarantee<Value>) -> Guarantee<Value> {
        precondition(next.core !== root, "a handler returned its own guarantee, which would then wait for itself")
        return next
    }

    /// Settles this core, whose operation has run, as `inner` settles. If the core must wait, `adopt` settles it: the
    /// code of an operation that only passes on its source's outcome. Consumes a reference to this core, and the
    /// caller's last reference to `inner`.
    ///
    /// If possible, `inner` is linked: its producer then settles this core's root itself. A link points to the root
    /// directly, so recursion through `then` has one level however long it runs, and frees each level's promises as it
    /// goes.
    ///
    /// The two then are one promise, with one outcome, and cancelling one cancels the other. So a promise is linked
    /// only if no other code can read it or attach to it: see `isKnownToProducerOnly`.
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
        // A state of exactly `.pending`: not claimed, not locked, no waiters. `marks` come last, since they may be read
        // only once `inner` is known to belong to this thread. With `.hasHadNextStep`, `inner` may wait for this core,
        // which `followSlow` finds out.
        guard !Tracing.isOn, own.isOpen, inner.borrow({ $0.state.load() == .pending }),
            Self.isKnownToProducerOnly(inner, here), inner.borrow({ !$0.marks.contains(.hasHadNextStep) })
        else { return false }
        if own.isPending {
            // The running reference becomes the link's reference.
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
                // Nothing else refers to this core, so its link, with the reference to the root, becomes `inner`'s
                // link.
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

    /// Returns true when only its producer and the caller, which has one reference, know a promise: nobody else can
    /// read its outcome, attach a handler, or cancel it. False for a promise of another loop than `here`.
    ///
    /// A pending promise's producer holds one reference. A combinator's sources hold one each, and the timer of
    /// `timeout` holds another, so the promises of `timeout`, and of several pending sources, are not linked. Nothing
    /// on this thread releases the promise meanwhile.
    @inline(__always)
    private static func isKnownToProducerOnly(_ inner: CoreRef, _ here: LoopRef) -> Bool {
        // The count is read before the annotations, because another thread may have annotated the core before releasing
        // it.
        inner.borrow { $0.loop.is(here) && !$0.role.contains(.externallySettled) } && inner.referenceCount == 2
            && inner.borrow { $0.shared.annotations.isDisjoint(with: .ofUnlinked) }
    }

    /// Makes this core, which was pending without a waiter, a link to `root`. From now on this core's producer settles
    /// the root.
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

    /// Notes that `inner`, linked to this root, settles it from now on.
    @inline(__always)
    private func didLink(from inner: PromiseCore) {
        let word = inner.sourceWord.loadRelaxed()
        sourceWord.store(word.isLinkedFrom ? word : .linkedFrom(inner.address))
    }

    /// Handles the other cases of `follow`. It checks for a circle before anything waits for `inner`, and tries a link,
    /// which leaves no waiter, before it attaches one.
    @inline(never)
    private func followSlow(_ inner: CoreRef, by adopt: @escaping (PromiseCore) -> Void) {
        defer { inner.release() }
        if Tracing.isOn { inner.borrow { Tracing.adopt(self, $0) } }
        let here = LoopRef.ofThisThread
        let root = rootRef

        // This core was cancelled while its operation ran, so the promise that the operation returned is no longer
        // wanted.
        guard isOpen else {
            inner.borrow { $0.cancelUnlessWanted() }
            return release()
        }

        // A circle. Only a core of this thread can wait for the root, and few cores have had a next step.
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

        // `inner` is linked, unless it has waiters, whose order must stay, or another thread may settle it, or has just
        // attached a waiter and released `inner`.
        if seen.waiters == nil && !seen.isLocked && root.borrow({ $0.loop == here }),
            Self.isKnownToProducerOnly(inner, here),
            root.borrow({ root in inner.borrow { $0.link(to: root, from: seen) } })
        {
            return release()
        }

        // The only adopter of this core waits in its place.
        if let adopter = takeSoleAdopter(root, here) {
            adopter.borrow { adopter in
                adopter.leaveLoop()
                inner.borrow { $0.attach(adopter, owned: adopter.ref) }
            }
            return release()
        }

        inner.borrow { wait(for: $0, then: adopt) }
    }

    /// Takes out the waiter of this core's root, with the list's reference, so that it can adopt `inner` in this core's
    /// place. `nil` unless it is the only waiter, waits to adopt the root's outcome, or to be rejected after that, and
    /// nothing else knows the root or this core.
    ///
    /// So a recursion takes constant memory even when a variable that refers to each promise prevents links, as in
    /// `current = step(); return current`: a level that is replaced in the variable leaves the chain of waiters.
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

    /// Returns true when `target` waits for `root` with a next step, perhaps through other cores. If so, `root` must
    /// not wait for `target`.
    ///
    /// No node leaves these lists now, because all the cores with such a step wait for `root`, which this thread has
    /// the right to settle.
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
