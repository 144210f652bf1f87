import Reactor

extension PromiseCore {
    /// Notifies a waiter that does not run inline, and schedules it on its loop. `word`, with its reference, becomes
    /// the waiter's `sourceWord`. Consumes the list's reference to the waiter.
    /// - Returns: false if the waiter had been withdrawn; node and word have then been released.
    @discardableResult
    func deliver(_ word: SourceWord, toOwned node: CoreRef) -> Bool {
        // Borrowed, because the waiter must be released where it is discarded, not inside this call.
        let loop = node.borrow { $0.loop.unsafelyUnwrapped }
        guard offer(word, to: node) else { return false }
        let isDelivered = loop.borrow {
            guard loop == .ofThisThread else { return $0.post(node.job) }
            $0.enqueueOwned(node.job)
            return true
        }
        // Only for the waiter of a `hang` on an ended loop; it has captured nothing.
        if !isDelivered { EventLoop.ofCurrentThread.jobs.discard(node.job) }
        return true
    }

    /// Like `deliver`, but the caller schedules the waiter.
    @inline(__always)
    fileprivate func offer(_ word: SourceWord, to node: CoreRef) -> Bool {
        // Its own thread may be withdrawing it.
        if node.borrow({ $0.sourceWord.replace(.waiting(forCoreAt: address), by: word) }) { return true }
        node.release()
        word.release()
        return false
    }

    /// Returns true when this waiter runs at once on the notifying thread, as a waiter without a loop always does.
    @inline(__always)
    func runsInline(at here: LoopRef) -> Bool {
        loop == nil || loop == here && role.contains(.inlineAtHome)
    }
}

/// The notification of several waiters, or of one that runs inline.
///
/// Lives on the settling thread's stack. An inline waiter's handler runs during the delivery, and may turn the loop,
/// for instance by a `hang` for a derived promise whose node comes later in the list. So the turn first completes the
/// delivery, through a pointer in the loop, and the frame that began the delivery finds nothing left to do.
struct Delivery {
    // Held by the settling frame.
    private let core: CoreRef
    /// The waiters still to notify, oldest first, owned by the delivery. Also `nil` between two batches.
    private var rest: CoreRef?
    private var outcome: StateWord
    private var isComplete = false

    private init(_ outcome: StateWord, of core: PromiseCore, to oldest: CoreRef) {
        self.core = core.ref
        self.outcome = outcome
        rest = oldest
    }

    /// Notifies `oldest` and the later waiters. The core must be marked as settling.
    @inline(never)
    static func deliverAll(_ outcome: StateWord, of core: PromiseCore, to oldest: CoreRef) {
        var delivery = Delivery(outcome, of: core, to: oldest)
        withUnsafeMutablePointer(to: &delivery) { deliverRest($0) }
    }

    /// Takes a pointer, because a waiter that runs here may call this function again.
    private static func deliverRest(_ delivery: UnsafeMutablePointer<Delivery>) {
        let core = delivery.pointee.core
        let here = LoopRef.ofThisThread
        while !delivery.pointee.isComplete {
            while let node = delivery.pointee.rest {
                delivery.pointee.rest = node.next
                core.borrow { send(node, of: $0, in: delivery, here) }
            }
            // The last waiter that ran may have completed the delivery.
            guard !delivery.pointee.isComplete else { return }
            delivery.pointee.takeLateWaiters()
        }
    }

    @inline(__always)
    private static func send(
        _ node: CoreRef, of core: PromiseCore, in delivery: UnsafeMutablePointer<Delivery>, _ here: LoopRef
    ) {
        let (runsInline, handles) = node.borrow { ($0.runsInline(at: here), $0.handles) }
        // The waiter receives this reference.
        core.retain()
        let word = SourceWord.settled(core.address, as: delivery.pointee.outcome)
        if runsInline {
            guard core.offer(word, to: node) else { return }
            // Before the waiter runs, because its handler may complete the delivery.
            if handles { delivery.pointee.noteHandled() }
            here.borrow { $0.jobs.runInline(node.job, interrupting: delivery, complete: completion) }
        } else if core.deliver(word, toOwned: node) && handles {
            delivery.pointee.noteHandled()
        }
    }

    /// Called by the loop before a running waiter turns it.
    private static let completion: InlineCompletion = { context in
        deliverRest(context.assumingMemoryBound(to: Delivery.self))
    }

    /// Takes the waiters attached meanwhile; if none, ends the settlement.
    private mutating func takeLateWaiters() {
        var seen = core.borrow { $0.state.load() }
        repeat {
            outcome = outcome.marked(asIn: seen)
            rest = seen.waiters
        } while !core.borrow { $0.state.tryToReplace(&seen, by: rest == nil ? outcome : outcome.settling) }
        rest = rest?.reverseInPlace()
        isComplete = rest == nil
    }

    private mutating func noteHandled() { outcome = outcome.handled }
}
