import Glibc
import Reactor
import Synchronization

// How a core settles and tells those who wait. That, and what is in the files beside it on attaching, following, cancelling,
// ending and the list of waiters, is the whole of it, and none of it is generic: values are words that the operations
// have stored.
//
// Who may do what:
// - Any thread may push a waiter onto a pending core's list, by CAS.
// - One party holds the right to settle: the operation of a child, the winner of `claim` among resolvers. Only it
//   takes the list of waiters, and so it may look at the list before it takes it. (Who thins the list out is of the
//   same thread; or the core is made by hand, and who has not claimed it keeps the claimer waiting: see `State.isBusy`.)
// - It holds the core by a reference, and does not give that up before it has sent all waiters on their way.
// - A reference is published by compare-and-swap or exchange, never by an atomic store: Swift 6.3.1 may move a
//   `swift_retain` below a store with releasing order, and another thread release the reference before it is counted.
// - A link is made, and what stands behind it is settled, on one thread only, that of both cores' loop. So two
//   threads cannot build a circle of links, and a promise made by hand, which any thread may settle, is never linked.

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

    /// The core at the end of the links, which holds state and value for all that lead to it. It lives as long as this
    /// one: a link owns what it leads to, and is never changed.
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

    /// `State.fulfilled` or `State.rejected` and the core that holds the payload, which lives as long as this one; or nil
    /// while pending.
    @inlinable @inline(__always)
    var settled: (core: Unmanaged<PromiseCore>, kind: UInt)? {
        let kind = state.load(ordering: .acquiring) & State.kindMask
        guard kind == State.link || kind == State.pending else { return (.passUnretained(self), kind) }
        return kind == State.pending ? nil : settledRoot
    }

    // Few have been linked.
    @usableFromInline @inline(never)
    var settledRoot: (core: Unmanaged<PromiseCore>, kind: UInt)? {
        while true {
            let root = unmanagedRoot
            switch root._withUnsafeGuaranteedRef({ $0.state.load(ordering: .acquiring) }) & State.kindMask {
            case State.pending: return nil
            // Linked between the two looks.
            case State.link: continue
            case let kind: return (root, kind)
            }
        }
    }

    /// Wins the right to settle a core that several resolvers share; false if another was first.
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

    // How a core that nothing but its holder settles is settled, by whoever holds the right to.

    @inlinable
    func fulfill<Value>(_ value: consuming Value) {
        store(value)
        settleRetaining(State.fulfilled | Self.flags(Value.self))
    }

    @usableFromInline
    func reject(_ error: any Error) {
        storeError(error, creationSite)
        settleRetaining(State.rejected)
    }

    /// Makes the payload, which is in place, this core's outcome, and hands the waiters on.
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
            guard waiter.isFastPath(from: source, here) && exchange(seen, State.handled(outcome)) else { return false }
            waiter.upstream.store(source | outcome & State.kindMask, ordering: .relaxed)
            return true
        }
        guard isDone else { return settleConsuming(outcome) }
        Unmanaged<EventLoop>.fromOpaque(here)._withUnsafeGuaranteedRef { $0.enqueueOwned(node) }
    }

    /// The same, and the caller keeps its reference: only what goes along with a waiter is retained.
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

    /// As the newest of a list, the only waiter: of this thread, is queued, is told, and has not been withdrawn.
    @inline(__always)
    private func isFastPath(from source: UInt, _ here: UnsafeMutableRawPointer) -> Bool {
        next == nil && loop == here && upstream.load(ordering: .relaxed) == source && role.isDisjoint(with: .unusual)
    }

    @inline(never)
    private func settleConsuming(_ outcome: UInt) {
        settleSlow(outcome)
        Unmanaged.passUnretained(self).release()
    }

    /// The cases beside the common one: no waiter, several, another thread's, an inline one, a link. The caller holds the
    /// core.
    private func settleSlow(_ outcome: UInt) {
        while true {
            let seen = state.load(ordering: .acquiring)
            if seen & State.kindMask == State.link {
                // Linked since: the right to settle is the root's now. The links between may be a million.
                let root = self.root
                // A combinator has other sources, which must find that they come too late.
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
            // A late comer must not overtake these on its own loop, so it goes on queueing here until all of them are on
            // their way.
            if exchange(seen, outcome | State.isSettling) { return deliverAll(waiter, outcome) }
        }
    }

    /// Whether the only waiter is a `hang`: others need not queue behind it.
    @inline(__always)
    private static func isLoneWakeUp(_ newest: Unmanaged<Job>) -> Bool {
        newest._withUnsafeGuaranteedRef {
            $0.next == nil && unsafeDowncast($0, to: PromiseCore.self).role.contains(.onlyWaking)
        }
    }

    /// Sends it on its way, with nothing: it looks for itself.
    private func wake(_ hang: Unmanaged<Job>) {
        if !Self.deliver(hang, from: address, Upstream.taken) { hang.release() }
    }

    /// For a core that has just been marked as settling: sends these on their way, and those that come meanwhile.
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

    /// Whether a waiter that is sent on its way from that thread runs at once.
    @inline(__always)
    func runsInline(at here: UnsafeMutableRawPointer) -> Bool {
        loop == nil || loop == here && role.contains(.inlineAtHome)
    }

    /// Sends one waiter on its way, with a reference to this core. Returns whether it was told, and does not only watch: one
    /// that has been withdrawn, and only had its place there still, was not.
    func send(_ node: Unmanaged<Job>, _ outcome: UInt) -> Bool {
        let isWatching = Self.core(node).role.contains(.onlyWatching)
        retain()
        if Self.deliver(node, from: address, address | outcome & State.kindMask) { return !isWatching }
        node.release()
        Unmanaged.passUnretained(self).release()
        return false
    }

    /// The waiters that have come since the list was taken, the oldest first; if there are none, the settlement has ended.
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

    /// Sends these on their way, oldest first, each with a reference to this core.
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
        // It was withdrawn, and only its place was still taken.
        node.release()
        Unmanaged.passUnretained(self).release()
    }

    /// Sends a waiter on its way that waits for the core at `source`, with `word` as what it is told; a reference comes
    /// with that. False if it has been withdrawn.
    static func deliver(_ node: Unmanaged<Job>, from source: UInt, _ word: UInt) -> Bool {
        // No reference of our own: the waiter's end must come where it is discarded, not one inside the other here.
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
        // The loop object is there: it outlives every handler that waits on it.
        let isDelivered = Unmanaged<EventLoop>.fromOpaque(loop)._withUnsafeGuaranteedRef {
            guard loop == EventLoop.addressOfThisThread else { return $0.post(node) }
            if isInlineAtHome { $0.runInline(node) } else { $0.enqueueOwned(node) }
            return true
        }
        // That loop has ended, and its thread too: the handler never runs, and is released on this one.
        if !isDelivered { EventLoop.ofCurrentThread.discard(node) }
        return true
    }
}
