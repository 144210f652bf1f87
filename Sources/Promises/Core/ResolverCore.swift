import Reactor

/// An externally settled promise. Any thread may read its call site at any time.
@usableFromInline
final class ResolverCore: PromiseCore, @unchecked Sendable {
    private let madeAt: CallSite
    /// True when the closure of a `Guarantee` fulfills it. That closure cannot be notified of a cancellation, and its
    /// later value would be lost silently, so withdrawing waiters never end the promise.
    private let isOfGuarantee: Bool

    /// Returns true for a clean-up, which a cancellation runs before it rejects the promise.
    private static func isCleanUp(_ node: CoreRef) -> Bool { node.borrow { $0.role.contains(.cleansUp) } }

    private static func isNotifiedFirst(_ node: CoreRef) -> Bool {
        node.borrow { !$0.role.isDisjoint(with: [.cleansUp, .stopsWork]) }
    }

    override func cancelExternally(with error: (any Error)?) -> Cancellation.Step {
        guard let waiters = claimForCancellation() else { return .cannotStop }
        if waiters.contains(where: Self.isCleanUp) {
            // Not empty: only this thread removes nodes from the locked list.
            rejectAfterCleanUps(from: waiters.removeAll(where: Self.isNotifiedFirst), with: error)
        } else {
            // Unlocks the list; `reject` waits for that.
            _ = consume waiters
            rejectCancelled(with: error, at: callSite)
        }
        return .stopped
    }

    override func cancel(ifOnly node: CoreRef) -> Bool {
        guard !isOfGuarantee, let waiters = LockedWaiters(of: self), waiters.takeAndClaim(only: node) else {
            return false
        }
        // Unlike in `claimForCancellation`, after unlocking: where no clean-up waits, nobody needs to know who brings
        // the error.
        annotate(.isDecidedByCancellation)
        node.borrow {
            $0.sourceWord.store(.taken)
            $0.leaveLoop()
        }
        // The node counts as a handler that received the error.
        reject(PromiseError.asCancellation, at: callSite, as: .rejectedAndHandled)
        return true
    }

    /// Notifies the nodes from `oldest` on, and rejects this core when the last clean-up has ended or been dropped. The
    /// caller has claimed the core.
    private func rejectAfterCleanUps(from oldest: CoreRef?, with error: (any Error)?) {
        let end = OnDeinit { [self] in rejectCancelled(with: error, at: callSite) }
        var next = oldest
        while let node = next {
            next = node.next
            if Self.isCleanUp(node) { node.object.whenSettled { withExtendedLifetime(end) {} } }
            let cancellation = CoreRef.retaining(error.map(PromiseCore.cancelled) ?? .plainlyCancelled)
            deliver(.settled(cancellation.address, as: .rejected), toOwned: node)
        }
    }

    @usableFromInline override var callSite: CallSite? { madeAt }

    override var isAlwaysWanted: Bool { isOfGuarantee }

    @usableFromInline
    init(_ callSite: CallSite, isOfGuarantee: Bool, code: CoreCode) {
        madeAt = callSite
        self.isOfGuarantee = isOfGuarantee
        super.init(state: .pending, loop: .ofThisThread, role: .externallySettled, code: code)
    }

    @inlinable @inline(__always)
    convenience init<Value>(
        of type: Value.Type, isOfGuarantee: Bool = false, _ file: StaticString, _ line: UInt
    ) {
        self.init(CallSite(file, line), isOfGuarantee: isOfGuarantee, code: .of(Follow<Value>.self))
    }
}
