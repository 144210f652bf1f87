import Reactor

/// The promise of the library's own work, such as a task or a lookup.
// @unchecked: for PromiseCore's reasons. `onCancel` is written before any other code has the promise.
package final class ExternalCore: PromiseCore, @unchecked Sendable {
    private let madeAt: CallSite?
    override var callSite: CallSite? { madeAt }

    /// True when a cancellation only calls `onCancel`, and the promise stays pending until the work settles it.
    private let isLeftToItsWork: Bool

    /// Ends the work, and rejects the promise, now or later. Called on any thread by a cancellation, which has claimed
    /// the promise unless `isLeftToItsWork`.
    package var onCancel: (_ core: ExternalCore, _ error: (any Error)?) -> Void = { _, _ in }

    package init<Value>(_ type: Value.Type, madeAt: CallSite? = nil, isLeftToItsWork: Bool = false) {
        self.madeAt = madeAt
        self.isLeftToItsWork = isLeftToItsWork
        super.init(state: .pending, loop: .ofThisThread, role: .externallySettled, code: .of(Follow<Value>.self))
    }

    override func cancelExternally(with error: (any Error)?) -> Cancellation.Step {
        if isLeftToItsWork {
            // After the promise has settled, its work may be gone.
            guard state.load().isClaimable else { return .cannotStop }
        } else {
            guard let waiters = claimForCancellation() else { return .cannotStop }
            // Unlocks the list; the rejection by `onCancel` waits for that.
            _ = consume waiters
        }
        onCancel(self, error)
        return .stopped
    }
}
