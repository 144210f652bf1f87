// How a cancelled promise of a resolver waits for the clean-ups of `onCancelThen`.

extension PromiseCore {
    /// Begins the clean-ups, which have been taken out of the list, from the oldest on, and rejects this core when all have
    /// ended. The caller has claimed the core.
    func rejectAfterCleanUps(from oldest: CoreRef, with error: (any Error)?) {
        let end = CancellationEnd(of: self, with: error)
        var next: CoreRef? = oldest
        while let node = next {
            next = node.next
            end.wait(for: node.object, on: nil)
            deliver(.cancellation(error), to: node)
        }
    }
}
