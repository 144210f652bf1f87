import Reactor
import Synchronization

/// The rest of a settlement in two phases, from the first waiter on that runs inline.
///
/// It lives on the stack of the thread that settles. The handler of an inline waiter runs in the middle of it, and may turn
/// the loop, by a `hang` for instance. What that waits for may be derived from the very promise that is being settled, and
/// so stand further down in the list. Therefore the turn completes the delivery first, through the pointer that the loop has
/// meanwhile, and the frame that began it finds nothing left to do.
struct Delivery {
    // The settling frame holds the core.
    private let core: Unmanaged<PromiseCore>
    /// The waiters that are still to be sent, the oldest first. Owned.
    private var rest: Unmanaged<Job>?
    /// What the state is to be in the end.
    private var outcome: UInt
    private var isComplete = false

    private init(_ outcome: UInt, of core: PromiseCore, to oldest: Unmanaged<Job>) {
        self.core = .passUnretained(core)
        self.outcome = outcome
        rest = oldest
    }

    /// Sends these waiters on their way, and those that come meanwhile, and ends the settlement.
    @inline(never)
    static func complete(_ outcome: UInt, of core: PromiseCore, to oldest: Unmanaged<Job>) {
        var delivery = Delivery(outcome, of: core, to: oldest)
        withUnsafeMutablePointer(to: &delivery) { complete($0) }
    }

    /// By pointer, since it may be called again, inside a waiter that it runs.
    private static func complete(_ delivery: UnsafeMutablePointer<Delivery>) {
        let core = delivery.pointee.core
        let here = EventLoop.unmanagedOfThisThread
        while !delivery.pointee.isComplete {
            while let node = delivery.pointee.rest {
                delivery.pointee.rest = node._withUnsafeGuaranteedRef { $0.next }
                core._withUnsafeGuaranteedRef { $0.send(node, in: delivery, here) }
            }
            // Or it has been completed inside the waiter that was sent last.
            guard !delivery.pointee.isComplete else { return }
            let late = core._withUnsafeGuaranteedRef { $0.takeLateWaiters(&delivery.pointee.outcome) }
            delivery.pointee.rest = late
            delivery.pointee.isComplete = late == nil
        }
    }

    /// For the loop, before a turn inside a waiter that runs.
    fileprivate static let completion: EventLoop.Completion = { context in
        complete(context.assumingMemoryBound(to: Delivery.self))
    }

    /// Notes that a waiter is told of a rejection.
    fileprivate mutating func noteHeard() { outcome = State.handled(outcome) }

    fileprivate var kind: UInt { outcome & State.kindMask }
}

extension PromiseCore {
    @inline(__always)
    fileprivate func send(
        _ node: Unmanaged<Job>, in delivery: UnsafeMutablePointer<Delivery>, _ here: Unmanaged<EventLoop>
    ) {
        let (runsInline, isWatching) = node._withUnsafeGuaranteedRef {
            let waiter = unsafeDowncast($0, to: PromiseCore.self)
            return (waiter.runsInline(at: here.toOpaque()), waiter.role.contains(.onlyWatching))
        }
        let outcome = address | delivery.pointee.kind
        guard runsInline else {
            if send(node, outcome) { delivery.pointee.noteHeard() }
            return
        }
        // Another thread may be withdrawing it; or takes it over at once, with the reference to us.
        retain()
        let isStillThere = node._withUnsafeGuaranteedRef {
            unsafeDowncast($0, to: PromiseCore.self).upstream
                .compareExchange(expected: address, desired: outcome, ordering: .acquiringAndReleasing).exchanged
        }
        guard isStillThere else {
            node.release()
            return Unmanaged.passUnretained(self).release()
        }
        // Noted before it runs: its handler may complete the delivery.
        if !isWatching { delivery.pointee.noteHeard() }
        here._withUnsafeGuaranteedRef { $0.runInline(node, interrupting: delivery, complete: Delivery.completion) }
    }
}
