import Glibc
import Reactor
import Synchronization

// How a core settles and notifies its waiters. This file and its neighbours, on attaching, adopting, cancelling, the
// deinit and the list of waiters, are all of it. None of it is generic: values are words that the operations have
// stored.
//
// Which thread may do what:
// - Any thread may push a waiter onto a pending core's list, by CAS.
// - One party holds the right to settle: the operation of a child, or the resolver that has won `claim`. Only that
//   party takes the list of waiters, so it may read the list before it takes it. (A list is thinned out on the thread
//   of that party. For an externally settled core, a thread that has not claimed it may do so too, and then keeps the
//   claiming party waiting: see `State.isBusy`.)
// - That party holds the core by a reference, and keeps the reference until it has notified all waiters.
// - A reference is published by compare-and-swap or exchange, never by an atomic store: Swift 6.3.1 may move a
//   `swift_retain` below a store with releasing order, and another thread may then release the reference before it is
//   counted.
// - A link is made, and the core that it leads to is settled, on one thread only, that of both cores' loop. So two
//   threads cannot build a cycle of links, and an externally settled promise, which any thread may settle, is never
//   linked.

extension PromiseCore {
    @inline(__always)
    static func core(_ word: UInt) -> PromiseCore {
        Unmanaged<PromiseCore>.fromOpaque(UnsafeRawPointer(bitPattern: word & State.pointerMask)!).takeUnretainedValue()
    }

    @inline(__always)
    static func core(_ node: Unmanaged<Job>) -> PromiseCore {
        node._withUnsafeGuaranteedRef { unsafeDowncast($0, to: PromiseCore.self) }
    }

    @inline(__always)
    static func waiters(_ word: UInt) -> Unmanaged<Job>? {
        UnsafeRawPointer(bitPattern: word & State.pointerMask).map { Unmanaged.fromOpaque($0) }
    }

    @inline(__always)
    var address: UInt { UInt(bitPattern: Unmanaged.passUnretained(self).toOpaque()) }

    /// The core at the end of the links, which holds state and value for all cores linked to it. It lives as long as
    /// this core: a link owns its root, and never changes.
    @usableFromInline
    var unmanagedRoot: Unmanaged<PromiseCore> {
        var core = Unmanaged.passUnretained(self)
        while true {
            let seen = core._withUnsafeGuaranteedRef { $0.state.load(ordering: .acquiring) }
            guard seen & State.kindMask == State.link else { return core }
            core = .fromOpaque(UnsafeRawPointer(bitPattern: seen & State.pointerMask)!)
        }
    }

    @usableFromInline
    var root: PromiseCore { unmanagedRoot.takeUnretainedValue() }

    /// `State.fulfilled` or `State.rejected` and the core that holds the payload, which lives as long as this one; or
    /// nil while pending.
    @inlinable @inline(__always)
    var settled: (core: Unmanaged<PromiseCore>, kind: UInt)? {
        let kind = state.load(ordering: .acquiring) & State.kindMask
        guard kind == State.link || kind == State.pending else { return (.passUnretained(self), kind) }
        return kind == State.pending ? nil : settledRoot
    }

    // Few cores have been linked.
    @usableFromInline @inline(never)
    var settledRoot: (core: Unmanaged<PromiseCore>, kind: UInt)? {
        while true {
            let root = unmanagedRoot
            switch root._withUnsafeGuaranteedRef({ $0.state.load(ordering: .acquiring) }) & State.kindMask {
            case State.pending: return nil
            // Linked between the two loads.
            case State.link: continue
            case let kind: return (root, kind)
            }
        }
    }

    /// Claims the right to settle a core that several resolvers share.
    /// - Returns: false if another one has claimed it before.
    @usableFromInline
    func claim() -> Bool {
        var seen = state.load(ordering: .relaxed)
        while true {
            guard seen & (State.kindMask | State.isClaimed) == State.pending else { return false }
            let (done, now) = state.weakCompareExchange(
                expected: seen, desired: seen | State.isClaimed, ordering: .acquiringAndReleasing)
            if done { return true }
            seen = now
        }
    }

    // How a core that only its holder may settle is settled, by the party with the right to.

    @inlinable
    func fulfill<Value>(_ value: consuming Value) {
        store(value)
        settleRetaining(State.fulfilled | Self.flags(Value.self))
    }

    /// Fulfills a core to which the caller holds the producer's reference, and passes that reference on: a lone waiter
    /// receives it as its source, so that nothing is retained.
    @inline(__always)
    static func fulfill<Value>(owned core: Unmanaged<PromiseCore>, _ value: consuming Value) {
        store(value, in: core)
        core._withUnsafeGuaranteedRef { $0.settle(State.fulfilled | flags(Value.self)) }
    }

    @usableFromInline
    func reject(_ error: any Error) { reject(error, from: creationSite) }

    /// Rejects with an error that has another origin than this core.
    /// - Parameter outcome: `State.rejected`, with `State.isHandled` for an error that needs no handler.
    @inline(__always)
    func reject(_ error: any Error, from origin: CallSite?, as outcome: UInt = State.rejected) {
        storeError(error, origin)
        settleRetaining(outcome)
    }

    /// Makes the payload, which is already stored, this core's outcome, and notifies the waiters.
    ///
    /// Consumes a reference to the core: a single waiter on this loop, the common case, receives it as its source, so
    /// that a hop retains nothing.
    @usableFromInline
    func settle(_ outcome: UInt) {
        let seen = state.load(ordering: .acquiring)
        guard seen & (State.kindMask | State.isBusy) == State.pending else { return settleConsuming(outcome) }
        guard let node = Self.waiters(seen) else {
            // The end of a chain.
            guard exchange(seen, outcome) else { return settleConsuming(outcome) }
            return Unmanaged.passUnretained(self).release()
        }
        let here = EventLoop.addressOfThisThread
        let source = address
        let isDone = node._withUnsafeGuaranteedRef {
            let waiter = unsafeDowncast($0, to: PromiseCore.self)
            guard waiter.isFastPath(from: source, here) else { return false }
            let isHandled = outcome & State.kindMask == State.rejected && !waiter.cameByLink
            guard exchange(seen, isHandled ? outcome | State.isHandled : outcome) else { return false }
            waiter.upstream.store(source | outcome & State.kindMask, ordering: .relaxed)
            return true
        }
        guard isDone else { return settleConsuming(outcome) }
        Unmanaged<EventLoop>.fromOpaque(here)._withUnsafeGuaranteedRef { $0.enqueueOwned(node) }
    }

    /// As `settle`, but the caller keeps its reference: the core is retained only for waiters that receive it.
    @usableFromInline
    func settleRetaining(_ outcome: UInt) {
        let seen = state.load(ordering: .acquiring)
        guard seen & (State.kindMask | State.isBusy) == State.pending else { return settleSlow(outcome) }
        guard let node = Self.waiters(seen) else {
            if exchange(seen, outcome) { return }
            return settleSlow(outcome)
        }
        if Self.isLoneWakeUp(node) && exchange(seen, outcome) { return wake(node) }
        let isFastPath = node._withUnsafeGuaranteedRef {
            unsafeDowncast($0, to: PromiseCore.self).isFastPath(from: address, EventLoop.addressOfThisThread)
        }
        guard isFastPath else { return settleSlow(outcome) }
        retain()
        settle(outcome)
    }

    /// Called on the newest waiter of a list: whether it is the only one, belongs to this thread, is queued and not run
    /// inline, receives the outcome, and has not been withdrawn.
    @inline(__always)
    private func isFastPath(from source: UInt, _ here: UnsafeMutableRawPointer) -> Bool {
        next == nil && loop == here && upstream.load(ordering: .relaxed) == source && role.isDisjoint(with: .unusual)
    }

    @inline(never)
    private func settleConsuming(_ outcome: UInt) {
        settleSlow(outcome)
        Unmanaged.passUnretained(self).release()
    }

    /// The uncommon cases: no waiter, several, a waiter of another thread, an inline waiter, a link. The caller holds
    /// the core.
    private func settleSlow(_ outcome: UInt) {
        while true {
            let seen = state.load(ordering: .acquiring)
            if seen & State.kindMask == State.link {
                // Linked meanwhile: the root is to be settled instead. There may be a million links on the way.
                let root = self.root
                // A combinator has further sources, which must find that they are too late.
                state.bitwiseOr(State.isClaimed, ordering: .relaxed)
                root.movePayload(from: self)
                root.retain()
                return root.settle(outcome)
            }
            assert(seen & State.kindMask == State.pending, "a promise was settled twice")
            if seen & State.isBusy != 0 {
                sched_yield()
                continue
            }
            guard let waiter = Self.waiters(seen) else {
                if exchange(seen, outcome) { return }
                continue
            }
            if Self.isLoneWakeUp(waiter) {
                if exchange(seen, outcome) { return wake(waiter) }
                continue
            }
            // A later waiter must not overtake these on its own loop, so it keeps queueing here until all of them have
            // been notified.
            if exchange(seen, outcome | State.isSettling) { return deliverAll(waiter, outcome) }
        }
    }

    /// Whether the only waiter is a `hang`, behind which no other waiter needs to queue.
    @inline(__always)
    private static func isLoneWakeUp(_ newest: Unmanaged<Job>) -> Bool {
        newest._withUnsafeGuaranteedRef {
            $0.next == nil && unsafeDowncast($0, to: PromiseCore.self).role.contains(.onlyWaking)
        }
    }

    /// Wakes a `hang`. It receives no outcome, since it checks the promise itself.
    private func wake(_ hang: Unmanaged<Job>) {
        if !Self.deliver(hang, from: address, Upstream.taken) { hang.release() }
    }

    /// For a core that has just been marked as settling: notifies these waiters, and those that are attached meanwhile.
    private func deliverAll(_ first: Unmanaged<Job>, _ outcome: UInt) {
        let here = EventLoop.addressOfThisThread
        var outcome = outcome
        var oldest = Job.reversed(first)
        repeat {
            while let node = oldest {
                // Its handler may turn the loop.
                if Self.core(node).runsInline(at: here) { return Delivery.complete(outcome, of: self, to: node) }
                oldest = node._withUnsafeGuaranteedRef { $0.next }
                if send(node, outcome) { outcome = State.handled(outcome) }
            }
            oldest = takeLateWaiters(&outcome)
        } while oldest != nil
    }

    /// Whether a waiter runs at once when that thread notifies it.
    @inline(__always)
    func runsInline(at here: UnsafeMutableRawPointer) -> Bool {
        loop == nil || loop == here && role.contains(.inlineAtHome)
    }

    /// Notifies one waiter, and passes it a reference to this core.
    /// - Returns: whether the waiter receives the outcome and handles a rejection. False for a waiter that has been
    ///   withdrawn, and whose node only remained in the list.
    func send(_ node: Unmanaged<Job>, _ outcome: UInt) -> Bool {
        let handles = Self.core(node).handles
        retain()
        if Self.deliver(node, from: address, address | outcome & State.kindMask) { return handles }
        node.release()
        Unmanaged.passUnretained(self).release()
        return false
    }

    /// The waiters that were attached since the list was taken, oldest first. If there are none, the settlement has
    /// ended.
    func takeLateWaiters(_ outcome: inout UInt) -> Unmanaged<Job>? {
        while true {
            let seen = state.load(ordering: .acquiring)
            let newest = Self.waiters(seen)
            // A thread may have read the error. (A fulfilled promise has that bit from the start, or never.)
            outcome |= seen & State.isHandled
            if exchange(seen, newest == nil ? outcome : outcome | State.isSettling) { return Job.reversed(newest) }
        }
    }

    @inline(__always)
    func exchange(_ seen: UInt, _ desired: UInt) -> Bool {
        state.compareExchange(expected: seen, desired: desired, ordering: .acquiringAndReleasing).exchanged
    }

    /// Notifies these waiters, oldest first, each with a reference to this core.
    func deliverList(_ first: Unmanaged<Job>?, _ mark: UInt) {
        var oldest = Job.reversed(first)
        while let node = oldest {
            oldest = node._withUnsafeGuaranteedRef { $0.next }
            deliver(node, mark)
        }
    }

    @inline(__always)
    private func deliver(_ node: Unmanaged<Job>, _ mark: UInt) {
        retain()
        if Self.deliver(node, from: address, address | mark) { return }
        // It was withdrawn, and only its node remained in the list.
        node.release()
        Unmanaged.passUnretained(self).release()
    }

    /// Notifies a waiter of the core at `source`: `word` becomes its `upstream`, with the reference that it contains.
    /// - Returns: false if the waiter has been withdrawn.
    static func deliver(_ node: Unmanaged<Job>, from source: UInt, _ word: UInt) -> Bool {
        // No reference is taken here: the waiter must be released where it is discarded, not nested inside this call.
        let (loop, isInlineAtHome) = node._withUnsafeGuaranteedRef {
            let waiter = unsafeDowncast($0, to: PromiseCore.self)
            return (waiter.loop, waiter.role.contains(.inlineAtHome))
        }
        // Its own thread may be withdrawing it.
        let isStillThere = node._withUnsafeGuaranteedRef {
            unsafeDowncast($0, to: PromiseCore.self).upstream
                .compareExchange(expected: source, desired: word, ordering: .acquiringAndReleasing).exchanged
        }
        guard isStillThere else { return false }
        guard let loop else {
            EventLoop.ofCurrentThread.runInline(node)
            return true
        }
        // The loop is there: it does not end before the handler has arrived.
        let isDelivered = Unmanaged<EventLoop>.fromOpaque(loop)._withUnsafeGuaranteedRef {
            guard loop == EventLoop.addressOfThisThread else { return $0.post(node) }
            if isInlineAtHome { $0.runInline(node) } else { $0.enqueueOwned(node) }
            return true
        }
        // Only a `hang` on a loop that has ended, which has captured nothing.
        if !isDelivered { EventLoop.ofCurrentThread.discard(node) }
        return true
    }
}
