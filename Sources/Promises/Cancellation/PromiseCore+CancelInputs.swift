import Reactor

// How a combinator is cancelled whose sources wait for clean-ups: it settles after them.

extension PromiseCore {
    /// Cancels the sources of this combinator, and rejects it when the last of them has settled that does not settle at once.
    func cancelInputsFirst(with error: (any Error)?, _ climb: CancellationClimb) {
        marks.insert(.isEndingCancelled)
        var sources: [PromiseCore] = []
        leaveInputs {
            sources.append($0)
            $0.enqueueCancel(climb.branch(to: $0))
        }
        let end = CancellationEnd(of: self, with: error)
        // Behind these cancellations: then it is known which of the sources end later.
        InternalJob.runInline {
            for source in sources where source.isEndingLater { end.wait(for: source, on: .ofThisThread) }
        }
    }

    /// Whether a cancellation has reached it and it settles later.
    var isEndingLater: Bool {
        guard settled == nil else { return false }
        let core = root
        if core.role.contains(.externallySettled) { return !core.isOpen }
        // The marks of another thread's core change meanwhile, and its cancellation is only on its way there.
        return core.loop == .ofThisThread && core.settlingCore.marks.contains(.isEndingCancelled)
    }
}
