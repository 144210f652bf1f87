import Reactor
import Synchronization

/// An externally settled promise, with its call site. Any thread may read that at any time.
@usableFromInline
final class ResolverCore: PromiseCore, @unchecked Sendable {
    private let madeAt: CallSite
    /// Set if the promise was cancelled, as opposed to rejected with a cancellation error. Before the promise settles,
    /// only the party that has claimed it accesses this.
    @exclusivity(unchecked) final var isCancelled = false

    override var mayWaitForCleanUps: Bool {
        LockedWaiters(of: self)?.contains(where: WatchingCore.isCleanUp) ?? false
    }

    override func cancelExternally(with error: (any Error)?) -> ProducerStop {
        // Claimed while the list is locked: no clean-up comes in between.
        guard let waiters = LockedWaiters(of: self), claim() else { return .refused }
        isCancelled = true
        guard waiters.contains(where: WatchingCore.isCleanUp),
            let cleanUps = waiters.removeAll(where: WatchingCore.isCleanUp)
        else { return .stopped(nil) }
        rejectAfterCleanUps(from: cleanUps, with: error)
        return .willEnd(nil)
    }

    @usableFromInline override var callSite: CallSite? { madeAt }

    @usableFromInline
    init(_ callSite: CallSite, code: CoreCode) {
        madeAt = callSite
        super.init(state: .pending, loop: .ofThisThread, role: .externallySettled, code: code)
    }

    @inlinable @inline(__always)
    convenience init<Value>(root type: Value.Type, _ file: StaticString, _ line: UInt) {
        self.init(CallSite(file, line), code: .of(Follow<Value>.self))
    }
}
