import Reactor

/// The result of a combinator: a promise that several others settle together.
// @unchecked: accessed only on its loop's thread, except for what PromiseCore itself allows other threads.
@usableFromInline
class CombinatorCore: PromiseCore, @unchecked Sendable {
    /// Nodes that have not run yet, plus one for the code that is adding sources.
    @exclusivity(unchecked) private final var outstanding = 1

    init(code: CoreCode) {
        super.init(state: .pending, loop: .ofThisThread, code: code)
    }

    /// The source at `index` has settled. Consumes the reference to it. Must end with `inputDidEnd`.
    func settled(_ index: Int, _ source: AnySource) { preconditionFailure("abstract") }

    /// The loop is ending, and the source at `index` has not settled. Must end with `inputDidEnd`.
    func loopEnds(beforeSourceAt index: Int) { preconditionFailure("abstract") }

    /// Cancels the sources, except those that another handler waits for.
    final override func cancelProducer() -> Bool {
        // The cancellation that arrived here has already examined all of them: nested ones need not.
        leaveInputs { $0.enqueueCancel(CancellationClimb()) }
        return true
    }

    final override var isCombinator: Bool { true }

    /// Whether the result needs all sources, and not one of them.
    var needsAllInputs: Bool { true }

    /// Counts one more source.
    final func begin() { outstanding += 1 }

    /// Releases everything that is kept only until the result settles.
    func releaseInputs() { preconditionFailure("abstract") }

    /// Counts a source that has settled, or is not waited for any more.
    final func inputDidEnd(_ error: @autoclosure () -> PromiseError = .noProducer) {
        outstanding -= 1
        guard outstanding == 0, isOpen else { return }
        producerDidEnd(error())
        releaseInputs()
    }
}
