import Reactor
import Synchronization

/// The rest of a settlement in two phases, beginning with the first waiter that runs inline.
///
/// It lives on the stack of the settling thread. The handler of an inline waiter runs in the middle of it, and may turn
/// the loop, by a `hang` for instance. The promise that such a `hang` waits for may be derived from the very promise
/// that is being settled, and its node may therefore be further down in the list. So the turn completes the delivery
/// first, through the pointer that the loop has meanwhile, and the frame that began it finds nothing left to do.
struct Delivery {
    // The settling frame holds the core.
    private let core: Unmanaged<PromiseCore>
    /// The waiters that are still to be notified, oldest first. Owned.
    private var rest: Unmanaged<Job>?
    /// The state word once the delivery is complete.
    private var outcome: UInt
    private var isComplete = false

    private init(_ outcome: UInt, of core: PromiseCore, to oldest: Unmanaged<Job>) {
        self.core = .passUnretained(core)
        self.outcome = outcome
        rest = oldest
    }

    /// Notifies these waiters and those that are attached meanwhile, and ends the settlement.
    @inline(never)
    static func complete(_ outcome: UInt, of core: PromiseCore, to oldest: Unmanaged<Job>) {
        var delivery = Delivery(outcome, of: core, to: oldest)
        withUnsafeMutablePointer(to: &delivery) { complete($0) }
    }

    /// By pointer, since a waiter that it runs may call it again.
    private static func complete(_ delivery: UnsafeMutablePointer<Delivery>) {
        let core = delivery.pointee.core
        let here = EventLoop.unmanagedOfThisThread
        while !delivery.pointee.isComplete {
            while let node = delivery.pointee.rest {
                delivery.pointee.rest = node._withUnsafeGuaranteedRef { $0.next }
                core._withUnsafeGuaranteedRef { $0.send(node, in: delivery, here) }
            }
            // The waiter that ran last may have completed it.
            guard !delivery.pointee.isComplete else { return }
            let late = core._withUnsafeGuaranteedRef { $0.takeLateWaiters(&delivery.pointee.outcome) }
            delivery.pointee.rest = late
            delivery.pointee.isComplete = late == nil
        }
    }

    /// The loop calls it before a turn inside a running waiter.
    fileprivate static let completion: EventLoop.Completion = { context in
        complete(context.assumingMemoryBound(to: Delivery.self))
    }

    /// Notes that a waiter receives the rejection.
    fileprivate mutating func noteHandled() { outcome = State.handled(outcome) }

    fileprivate var kind: UInt { outcome & State.kindMask }
}

extension PromiseCore {
    @inline(__always)
    fileprivate func send(
        _ node: Unmanaged<Job>, in delivery: UnsafeMutablePointer<Delivery>, _ here: Unmanaged<EventLoop>
    ) {
        let (runsInline, handles) = node._withUnsafeGuaranteedRef {
            let waiter = unsafeDowncast($0, to: PromiseCore.self)
            return (waiter.runsInline(at: here.toOpaque()), waiter.handles)
        }
        let outcome = address | delivery.pointee.kind
        guard runsInline else {
            if send(node, outcome) { delivery.pointee.noteHandled() }
            return
        }
        // Another thread may be withdrawing the waiter. Or this exchange hands it over at once, with the reference to
        // this core.
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
        if handles { delivery.pointee.noteHandled() }
        here._withUnsafeGuaranteedRef { $0.runInline(node, interrupting: delivery, complete: Delivery.completion) }
    }
}
