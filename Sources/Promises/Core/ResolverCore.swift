import Reactor
import Synchronization

/// An externally settled promise, with its call site. Any thread may read that at any time.
@usableFromInline
final class ResolverCore: PromiseCore, @unchecked Sendable {
    private let madeAt: CallSite
    /// Whether a closure of `Guarantee` fulfills it. The closure cannot be notified of a cancellation, so no
    /// withdrawing waiter ends the promise: a later value would be lost silently.
    private let isOfGuarantee: Bool
    /// Set if the promise was cancelled, not merely rejected with a cancellation error. Before the promise settles,
    /// only the party that has claimed it accesses this.
    @exclusivity(unchecked) private final var isCancelled = false

    override var hasBeenCancelled: Bool? { isCancelled }

    override var mayWaitForCleanUps: Bool {
        LockedWaiters(of: self)?.contains(where: WatchingCore.isCleanUp) ?? false
    }

    override func cancelExternally(with error: (any Error)?) -> ProducerStop {
        // Claimed while the list is locked: no clean-up can be added in between.
        guard let waiters = LockedWaiters(of: self), claim() else { return .refused }
        isCancelled = true
        guard waiters.contains(where: WatchingCore.isCleanUp),
            let cleanUps = waiters.removeAll(where: WatchingCore.isCleanUp)
        else { return .stopped(nil) }
        rejectAfterCleanUps(from: cleanUps, with: error)
        return .willEnd
    }

    override func cancel(ifOnly node: CoreRef) -> Bool {
        guard !isOfGuarantee, let waiters = LockedWaiters(of: self), waiters.takeAndClaim(only: node) else {
            return false
        }
        isCancelled = true
        node.borrow {
            $0.upstream.store(.taken)
            $0.leaveLoop()
        }
        // The node counts as a handler that received the error.
        reject(PromiseError.asCancellation, at: callSite, as: .rejectedAndHandled)
        return true
    }

    /// Begins the clean-ups, which have been taken out of the list, oldest first, and rejects this core when all have
    /// ended. The caller has claimed the core.
    private func rejectAfterCleanUps(from oldest: CoreRef, with error: (any Error)?) {
        let end = CleanUpsEnd(of: self, with: error)
        var next: CoreRef? = oldest
        while let node = next {
            next = node.next
            node.object.whenEnded { withExtendedLifetime(end) {} }
            deliver(.cancellation(error), to: node)
        }
    }

    @usableFromInline override var callSite: CallSite? { madeAt }

    override var continuesUnobserved: Bool { isOfGuarantee }

    @usableFromInline
    init(_ callSite: CallSite, isOfGuarantee: Bool, code: CoreCode) {
        madeAt = callSite
        self.isOfGuarantee = isOfGuarantee
        super.init(state: .pending, loop: .ofThisThread, role: .externallySettled, code: code)
    }

    @inlinable @inline(__always)
    convenience init<Value>(
        root type: Value.Type, isOfGuarantee: Bool = false, _ file: StaticString, _ line: UInt
    ) {
        self.init(CallSite(file, line), isOfGuarantee: isOfGuarantee, code: .of(Follow<Value>.self))
    }
}

/// Rejects a cancelled core when the last of its clean-ups has ended, or never will: its last reference is released
/// then.
private final class CleanUpsEnd {
    private let core: ResolverCore
    private let error: (any Error)?

    init(of core: ResolverCore, with error: (any Error)?) {
        self.core = core
        self.error = error
    }

    deinit { core.reject(by: .itself(error), at: core.callSite) }
}
