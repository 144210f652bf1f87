import Reactor

/// An externally settled promise. Any thread may read its call site at any time.
@usableFromInline
final class ResolverCore: PromiseCore, @unchecked Sendable {
    private let madeAt: CallSite
    /// True when a closure of `Guarantee` fulfills it. The closure cannot be notified of a cancellation, so no
    /// withdrawing waiter ends the promise: a later value would be lost silently.
    private let isOfGuarantee: Bool

    /// Returns true for a clean-up of the promise. A cancellation runs it first, and then rejects the promise.
    private static func isCleanUp(_ node: CoreRef) -> Bool { node.borrow { $0.role.contains(.cleansUp) } }

    private static func isNotifiedFirst(_ node: CoreRef) -> Bool {
        node.borrow { !$0.role.isDisjoint(with: [.cleansUp, .stopsWork]) }
    }

    override func cancelExternally(with error: (any Error)?) -> Cancellation.Step {
        guard let waiters = claimForCancellation() else { return .cannotStop }
        let hasCleanUps = waiters.contains(where: Self.isCleanUp)
        // Also unlocks the list, which `reject` waits for.
        if let notified = waiters.removeAll(where: { hasCleanUps && Self.isNotifiedFirst($0) }) {
            rejectAfterCleanUps(from: notified, with: error)
        } else {
            rejectCancelled(with: error, at: callSite)
        }
        return .stopped
    }

    override func cancel(ifOnly node: CoreRef) -> Bool {
        guard !isOfGuarantee, let waiters = LockedWaiters(of: self), waiters.takeAndClaim(only: node) else {
            return false
        }
        annotate(.isDecidedByCancellation)
        node.borrow {
            $0.sourceWord.store(.taken)
            $0.leaveLoop()
        }
        // The node counts as a handler that received the error.
        reject(PromiseError.asCancellation, at: callSite, as: .rejectedAndHandled)
        return true
    }

    /// Notifies these nodes, oldest first, and rejects this core when the last clean-up has ended, or never will. The
    /// caller has claimed the core.
    private func rejectAfterCleanUps(from oldest: CoreRef, with error: (any Error)?) {
        let end = OnDeinit { [self] in rejectCancelled(with: error, at: callSite) }
        var next: CoreRef? = oldest
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

/// The promise of the library's own work, such as a task or a lookup.
// @unchecked: as PromiseCore. `onCancel` is written before any other code has the promise.
package final class ExternalCore: PromiseCore, @unchecked Sendable {
    private let madeAt: CallSite?
    override var callSite: CallSite? { madeAt }

    /// True when a cancellation only calls `onCancel`, and the promise stays pending until the work settles it.
    private let isLeftToItsWork: Bool

    /// Ends the work, and rejects the promise, now or later. Called on any thread by a cancellation, which has claimed
    /// the promise unless it is left to its work.
    package var onCancel: (_ core: ExternalCore, _ error: (any Error)?) -> Void = { _, _ in }

    package init<Value>(_ type: Value.Type, madeAt: CallSite? = nil, isLeftToItsWork: Bool = false) {
        self.madeAt = madeAt
        self.isLeftToItsWork = isLeftToItsWork
        super.init(externallySettled: Value.self)
    }

    override func cancelExternally(with error: (any Error)?) -> Cancellation.Step {
        // Work that has ended may be gone.
        guard isLeftToItsWork ? state.load().isClaimable : claimForCancellation() != nil else { return .cannotStop }
        onCancel(self, error)
        return .stopped
    }
}

/// Calls a function when its last reference is released: with a handler that has run, or that never will.
package final class OnDeinit {
    private let body: () -> Void

    package init(_ body: @escaping () -> Void) { self.body = body }

    deinit { body() }
}
