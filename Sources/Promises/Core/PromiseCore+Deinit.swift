import Glibc
import Reactor
import Synchronization

// How a core ends: when its last reference is released, and when its producer ends without settling it.

extension PromiseCore {
    func end(_ record: TraceRecord? = nil) {
        let seen = state.load(ordering: .acquiring)
        switch seen & State.kindMask {
        case State.fulfilled:
            if seen & State.isTrivial == 0 { code(self, .destroy) }
        case State.rejected:
            let error = payloadAddress.assumingMemoryBound(to: (any Error).self).move()
            let isHandled = seen & State.isHandled != 0 || annotations.load(ordering: .relaxed) & Self.isLetGo != 0
            if !isHandled { Reports.unhandled(error, origin, record) }
        case State.link:
            // The loop that kept it has ended: it has nothing to destroy.
            if seen == State.spare { return }
            dropOperation()
            Self.releaseLinks(seen)
        default:
            assert(Self.waiters(seen) == nil, "a promise's producer ended without notifying the waiters")
            dropOperation()
        }
    }

    /// A chain of links can be a million long; a loop releases it, because nested deinits would overflow the stack.
    static func releaseLinks(_ first: UInt) {
        var word = first
        while word & State.kindMask == State.link {
            var core = Unmanaged<PromiseCore>.fromOpaque(UnsafeRawPointer(bitPattern: word & State.pointerMask)!)
                .takeRetainedValue()
            guard isKnownUniquelyReferenced(&core) else { return }
            word = core.state.load(ordering: .acquiring)
            // This thread has the only reference, so it may take the link. The core is released as pending, without
            // waiters.
            if word & State.kindMask == State.link { core.state.store(State.pending, ordering: .relaxed) }
        }
    }

    // MARK: Without a producer

    /// The producer of this core has ended, or is about to: the waiters are notified, each on its own loop. The
    /// producer calls this while it still holds the core.
    func producerDidEnd(_ error: @autoclosure () -> PromiseError = .noProducer) {
        guard isOpen else { return }
        let error = error()
        if error.staysPending { return abandon() }
        reject(error, from: nil)
    }

    /// Drops the waiters without running them, each on its own loop; this core and its waiters stay pending forever.
    /// Call it only with the right to settle.
    func abandon() {
        while true {
            let seen = state.load(ordering: .acquiring)
            if seen & State.kindMask == State.link { return root.abandon() }
            guard seen & State.kindMask == State.pending else { return }
            if seen & State.isBusy != 0 {
                sched_yield()
            } else if let waiter = Self.waiters(seen) {
                if exchange(seen, seen & ~State.pointerMask) { deliverList(waiter, Upstream.abandoned) }
            } else {
                let never = Unmanaged.passRetained(PromiseCore.never)
                if exchange(seen, UInt(bitPattern: never.toOpaque()) | State.link) { return }
                never.release()
            }
        }
    }

    /// The root of all promises that will never settle: always pending, and without waiters.
    static let never = PromiseCore(state: State.pending, loop: nil) { _, _ in }
}
