// How a cancelled promise of a resolver waits for the clean-ups of `onCancelThen`.

extension PromiseCore {
    /// Begins the clean-ups, which have been taken out of the list, from the oldest on, and rejects this core when all have
    /// ended. The caller has claimed the core.
    func rejectAfterCleanUps(from oldest: CoreRef, with error: (any Error)?) {
        let end = EndOfCleanUps(self, error)
        var next: CoreRef? = oldest
        while let node = next {
            next = node.next
            _ = AfterCleanUps(node.object, on: nil) { [end] in _ = end }
            deliver(.cancellation(error), to: node)
        }
    }
}

/// Its last reference is released when the last clean-up of a cancelled resolver has ended.
private final class EndOfCleanUps {
    /// Claimed by the cancellation.
    private let core: PromiseCore
    private let error: (any Error)?

    init(_ core: PromiseCore, _ error: (any Error)?) {
        self.core = core
        self.error = error
    }

    deinit { core.reject(by: .itself(error), at: core.callSite) }
}
