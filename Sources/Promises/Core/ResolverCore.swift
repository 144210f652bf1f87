import Reactor
import Synchronization

/// An externally settled promise, with its call site. Any thread may read that at any time.
@usableFromInline
final class ResolverCore: PromiseCore, @unchecked Sendable {
    private let madeAt: CallSite
    /// Whether a closure of `Guarantee` fulfills it. Nobody can be told of a cancellation then, so none of its waiters that
    /// withdraws ends it: what the closure brings later would be lost, without a word.
    private let isOfGuarantee: Bool
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
