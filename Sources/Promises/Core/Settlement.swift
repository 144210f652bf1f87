import Reactor
import Synchronization

// How a core settles, how others wait for it, and how it becomes another's equal. The whole of it is here, and none of
// it is generic: values are words that the operations have stored.
//
// Who may do what:
// - Any thread may push a waiter onto a pending core's list, by CAS.
// - One party holds the right to settle: the operation of a child, the winner of `claim` among resolvers. Only it
//   removes waiters, and so it may look at the list before it takes it.
// - Only the thread of a core's own loop links it. Two threads can therefore not build a circle of links.

extension Core {
    @inline(__always)
    private static func core(_ word: UInt) -> Core {
        Unmanaged<Core>.fromOpaque(UnsafeRawPointer(bitPattern: word & State.pointerMask)!).takeUnretainedValue()
    }

    @inline(__always)
    private static func core(_ node: Unmanaged<Job>) -> Core {
        node._withUnsafeGuaranteedRef { unsafeDowncast($0, to: Core.self) }
    }

    @inline(__always)
    private static func waiters(_ word: UInt) -> Unmanaged<Job>? {
        UnsafeRawPointer(bitPattern: word & State.pointerMask).map { Unmanaged.fromOpaque($0) }
    }

    @inline(__always)
    private var address: UInt { UInt(bitPattern: Unmanaged.passUnretained(self).toOpaque()) }

    /// The core at the end of the links, which holds state and value for all that lead to it. It lives as long as this
    /// one: a link owns what it leads to, and is never changed.
    @usableFromInline
    var unmanagedRoot: Unmanaged<Core> {
        var core = Unmanaged.passUnretained(self)
        while true {
            let seen = core._withUnsafeGuaranteedRef { $0.state.load(ordering: .acquiring) }
            guard seen & State.kindMask == State.link else { return core }
            core = .fromOpaque(UnsafeRawPointer(bitPattern: seen & State.pointerMask)!)
        }
    }

    @usableFromInline
    var root: Core { unmanagedRoot.takeUnretainedValue() }

    /// `State.fulfilled` or `State.rejected` and the core that holds the payload, or nil while pending.
    @usableFromInline
    var settled: (core: Core, kind: UInt)? {
        let root = unmanagedRoot
        let kind = root._withUnsafeGuaranteedRef { $0.state.load(ordering: .acquiring) } & State.kindMask
        switch kind {
        case State.pending: return nil
        // Linked between the two looks.
        case State.link: return root.takeUnretainedValue().settled
        default: return (root.takeUnretainedValue(), kind)
        }
    }

    // MARK: Waiting

    /// Lets `waiter` run once this core has settled: on its own loop, which must be this thread's, in the order of
    /// attaching; or inline, if it has none.
    @usableFromInline
    func attach(_ waiter: Core) {
        let node = Unmanaged<Job>.passRetained(waiter)
        let here = EventLoop.unmanagedOfThisThread
        if waiter.loop != nil { here._withUnsafeGuaranteedRef { $0.handlerWaits() } }
        let seen = state.load(ordering: .acquiring)
        if seen & State.kindMask == State.link { return root.attach(node, here) }
        attach(node, here)
    }

    private func attach(_ node: Unmanaged<Job>, _ here: Unmanaged<EventLoop>) {
        var seen = state.load(ordering: .acquiring)
        while true {
            let kind = seen & State.kindMask
            guard kind == State.pending || seen & State.isSettling != 0 else { break }
            node._withUnsafeGuaranteedRef { $0.next = Self.waiters(seen) }
            let word = UInt(bitPattern: node.toOpaque()) | seen & ~State.pointerMask
            let (done, now) = state.weakCompareExchange(
                expected: seen, desired: word, successOrdering: .releasing, failureOrdering: .acquiring)
            if done { return }
            seen = now
        }
        // Linked since we looked.
        if seen & State.kindMask == State.link { return root.attach(node, here) }
        markHandled()
        let waiter = Self.core(node)
        retain()
        waiter.sourceWord = address | seen & State.kindMask
        if waiter.loop == nil || waiter.isInlineAtHome { return here._withUnsafeGuaranteedRef { $0.runInline(node) } }
        here._withUnsafeGuaranteedRef {
            // What another thread has posted to us was settled before: it must not be overtaken.
            $0.takeMail()
            $0.enqueueOwned(node)
        }
    }

    /// A rejection that somebody has been told of is not reported when it dies.
    @usableFromInline
    func markHandled() {
        let seen = state.load(ordering: .relaxed)
        guard seen & (State.kindMask | State.isHandled) == State.rejected else { return }
        state.bitwiseOr(State.isHandled, ordering: .relaxed)
    }

    // MARK: Settling

    /// Wins the right to settle a core that several resolvers share; false if another was first.
    @usableFromInline
    func claim() -> Bool {
        var seen = state.load(ordering: .relaxed)
        while true {
            let kind = seen & State.kindMask
            guard kind == State.pending || kind == State.link, seen & State.isClaimed == 0 else { return false }
            let (done, now) = state.weakCompareExchange(
                expected: seen, desired: seen | State.isClaimed, ordering: .acquiringAndReleasing)
            if done { return true }
            seen = now
        }
    }

    /// Makes the payload, which is in place, this core's outcome, and hands the waiters on.
    ///
    /// Consumes a reference to the core: a single waiter on this loop, the common case, receives it as its source, so
    /// that a hop retains nothing.
    @usableFromInline
    func settle(_ outcome: UInt) {
        let seen = state.load(ordering: .acquiring)
        guard seen & State.kindMask == State.pending, let waiter = Self.waiters(seen) else {
            return settleAtLeisure(outcome)
        }
        let here = EventLoop.addressOfThisThread
        let isOnlyLocal = waiter._withUnsafeGuaranteedRef {
            $0.next == nil && Self.core(waiter).loop == here && !Self.core(waiter).isInlineAtHome
        }
        let final = State.handled(outcome)
        guard isOnlyLocal && exchange(seen, final) else { return settleAtLeisure(outcome) }
        Self.core(waiter).sourceWord = address | outcome & State.kindMask
        Unmanaged<EventLoop>.fromOpaque(here)._withUnsafeGuaranteedRef { $0.enqueueOwned(waiter) }
    }

    /// The cases beside the common one: no waiter, several, another thread's, an inline one, a link.
    private func settleAtLeisure(_ outcome: UInt) {
        while true {
            let seen = state.load(ordering: .acquiring)
            if seen & State.kindMask == State.link {
                // Linked since: the right to settle is the root's now. The links between may be a million.
                let root = self.root
                root.movePayload(from: self)
                code = { _, _ in }
                root.retain()
                root.settle(outcome)
                break
            }
            assert(seen & State.kindMask == State.pending, "a promise was settled twice")
            guard let waiter = Self.waiters(seen) else {
                if exchange(seen, outcome) { break }
                continue
            }
            // A late comer must not overtake these on its own loop, so it goes on queueing here until all of them are on
            // their way.
            let final = Self.tellsAnyone(waiter) ? State.handled(outcome) : outcome
            if exchange(seen, final | State.isSettling) {
                deliverAll(waiter, final)
                break
            }
        }
        Unmanaged.passUnretained(self).release()
    }

    /// Whether one of the waiters is told of a rejection, and does not only watch.
    private static func tellsAnyone(_ newest: Unmanaged<Job>?) -> Bool {
        var waiter = newest
        while let node = waiter {
            guard core(node).isOnlyWatching else { return true }
            waiter = node._withUnsafeGuaranteedRef { $0.next }
        }
        return false
    }

    private func deliverAll(_ first: Unmanaged<Job>, _ outcome: UInt) {
        var outcome = outcome
        var newest: Unmanaged<Job>? = first
        while true {
            var oldest: Unmanaged<Job>?
            while let waiter = newest {
                newest = waiter._withUnsafeGuaranteedRef { $0.next }
                waiter._withUnsafeGuaranteedRef { $0.next = oldest }
                oldest = waiter
            }
            while let waiter = oldest {
                oldest = waiter._withUnsafeGuaranteedRef { $0.next }
                retain()
                Self.deliver(waiter, address | outcome & State.kindMask)
            }
            // Done, unless more have come meanwhile.
            while true {
                let seen = state.load(ordering: .acquiring)
                newest = Self.waiters(seen)
                if Self.tellsAnyone(newest) { outcome = State.handled(outcome) }
                // Somebody may have read the error. (A fulfilled promise has that bit from the start, or never.)
                outcome |= seen & State.isHandled
                if exchange(seen, newest == nil ? outcome : outcome | State.isSettling) { break }
            }
            guard newest != nil else { return }
        }
    }

    @inline(__always)
    private func exchange(_ seen: UInt, _ desired: UInt) -> Bool {
        state.compareExchange(expected: seen, desired: desired, ordering: .acquiringAndReleasing).exchanged
    }

    /// Sends a waiter on its way with its source, whose reference goes with it.
    private static func deliver(_ node: Unmanaged<Job>, _ source: UInt) {
        // No reference of our own: the waiter's end must come where it is discarded, not one inside the other here.
        let waitersLoop = node._withUnsafeGuaranteedRef {
            let waiter = unsafeDowncast($0, to: Core.self)
            waiter.sourceWord = source
            return waiter.loop
        }
        guard let loop = waitersLoop else { return EventLoop.ofThisThread.runInline(node) }
        // The loop object is there: it outlives every handler that waits on it.
        let isDelivered = Unmanaged<EventLoop>.fromOpaque(loop)._withUnsafeGuaranteedRef {
            guard loop == EventLoop.addressOfThisThread else { return $0.post(node) }
            if node._withUnsafeGuaranteedRef({ unsafeDowncast($0, to: Core.self).isInlineAtHome }) {
                $0.runInline(node)
            } else {
                $0.enqueueOwned(node)
            }
            return true
        }
        // That loop has ended, and its thread too: the handler never runs, and is released on this one.
        if !isDelivered { EventLoop.ofThisThread.discard(node) }
    }

    // MARK: Following another

    /// Settles this core as `inner` settles. Consumes a reference to this core, whose own operation has been taken out and
    /// replaced by `Follow`.
    ///
    /// If it can, it links: `inner`'s producer then settles this core's root itself. Links lead to the root at once, so
    /// recursion through `then` has one level however long it runs, and each level's promises are freed as it goes.
    @usableFromInline
    func follow(_ inner: Core) {
        let here = EventLoop.addressOfThisThread
        let root = unmanagedRoot
        while true {
            let source = inner.unmanagedRoot
            // Only a core of this thread can be marked as forwarding, and few are.
            let mayWaitForUs = source._withUnsafeGuaranteedRef { $0.loop == here && $0.isForwarding }
            if source.toOpaque() == root.toOpaque() || mayWaitForUs && Self.forwards(root, to: source, here) {
                storeError(PromiseError.returnedSelf, nil)
                return settle(State.rejected)
            }
            let seen = source._withUnsafeGuaranteedRef { $0.state.load(ordering: .acquiring) }
            if seen & State.kindMask == State.link { continue }
            guard seen & State.kindMask == State.pending else {
                return settle(as: source, seen)
            }
            // With waiters of its own it keeps them, and their order; another thread's is not ours to link.
            let canLink =
                seen & State.pointerMask == 0
                && source._withUnsafeGuaranteedRef { $0.loop == here }
                && root._withUnsafeGuaranteedRef { $0.loop == here }
            guard canLink else { break }
            let link = UInt(bitPattern: root.retain().toOpaque()) | State.link | seen & State.isClaimed
            if source._withUnsafeGuaranteedRef({ $0.exchange(seen, link) }) {
                return Unmanaged.passUnretained(self).release()
            }
            root.release()
        }
        isForwarding = true
        inner.attach(self)
        Unmanaged.passUnretained(self).release()
    }

    /// Whether `target` waits for `root`, through others perhaps, to become as it is: then `root` must not wait for it.
    ///
    /// The right to settle `root` is ours, and all that follows it waits for that, so nothing leaves these lists now.
    private static func forwards(
        _ root: Unmanaged<Core>, to target: Unmanaged<Core>, _ here: UnsafeMutableRawPointer
    ) -> Bool {
        var followers = [root]
        while let next = followers.popLast() {
            var waiter = waiters(next._withUnsafeGuaranteedRef { $0.state.load(ordering: .acquiring) })
            while let node = waiter {
                waiter = node._withUnsafeGuaranteedRef { $0.next }
                let follower = core(node)
                guard follower.loop == here && follower.isForwarding else { continue }
                let end = follower.unmanagedRoot
                if end.toOpaque() == target.toOpaque() { return true }
                followers.append(end)
            }
        }
        return false
    }

    /// As `source`, which has settled: no need to queue for what is known.
    private func settle(as source: Unmanaged<Core>, _ seen: UInt) {
        source._withUnsafeGuaranteedRef { $0.markHandled() }
        sourceWord = UInt(bitPattern: source.retain().toOpaque()) | seen & State.kindMask
        code(self, .run)
    }

    // MARK: The end of a core

    func end() {
        let seen = state.load(ordering: .acquiring)
        switch seen & State.kindMask {
        case State.fulfilled:
            if seen & State.isTrivial == 0 { code(self, .destroy) }
        case State.rejected:
            let error = payloadAddress.assumingMemoryBound(to: (any Error).self).move()
            if seen & State.isHandled == 0 { Diagnostics.unhandled(error, origin) }
        case State.link:
            // If its operation has not run, it still has it.
            code(self, .drop)
            Self.releaseLinks(seen)
        default:
            code(self, .drop)
            abandon(Self.waiters(seen))
        }
    }

    /// A chain of links can be a million long; it is taken apart in a loop, not by one deinit inside another.
    private static func releaseLinks(_ first: UInt) {
        var word = first
        while word & State.kindMask == State.link {
            var core = Unmanaged<Core>.fromOpaque(UnsafeRawPointer(bitPattern: word & State.pointerMask)!)
                .takeRetainedValue()
            guard isKnownUniquelyReferenced(&core) else { return }
            word = core.state.load(ordering: .acquiring)
            // Nobody else has it, so its link is ours to take; it dies here as pending, without waiters.
            if word & State.kindMask == State.link { core.state.store(State.pending, ordering: .relaxed) }
        }
    }

    /// Nobody will ever settle the core that these wait for: they are told so, each on its own loop.
    private func abandon(_ newest: Unmanaged<Job>?) {
        guard let newest else { return }
        if conf.abandoned == .log { return Self.letGo(newest) }
        let source = Core(root: Void.self)
        source.storeError(PromiseError.abandoned, nil)
        source.state.store(State.rejected | State.isHandled | State.isSettling, ordering: .relaxed)
        source.deliverAll(newest, State.rejected | State.isHandled)
    }

    /// Lets these go without running them, each on its own loop; they stay pending.
    private static func letGo(_ newest: Unmanaged<Job>) {
        var rest: Unmanaged<Job>? = newest
        while let node = rest {
            rest = node._withUnsafeGuaranteedRef { $0.next }
            node._withUnsafeGuaranteedRef {
                let waiter = unsafeDowncast($0, to: Core.self)
                let code = waiter.code
                waiter.code = { core, phase in
                    guard phase == .run else { return code(core, phase) }
                    code(core, .drop)
                    core.code = { _, _ in }
                    Unmanaged.passUnretained(core).release()
                }
            }
            deliver(node, 0)
        }
    }
}
