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
    func inputDidSettle(_ index: Int, _ source: AnySource) { preconditionFailure("abstract") }

    /// The loop is ending, and the source at `index` has not settled. Must end with `inputDidEnd`.
    func loopEnds(beforeSourceAt index: Int) { preconditionFailure("abstract") }

    /// The cancellation that rejects the result, once the sources that are left have settled: its error, if it has one
    /// of its own.
    private var rejection: (any Error)??

    /// The nodes that wait for sources.
    var inputs: [PromiseCore] { preconditionFailure("abstract") }

    /// Leaves these pending sources.
    /// - Returns: how many they are.
    @discardableResult
    func leaveInputs(where isToGo: (PromiseCore) -> Bool) -> Int { preconditionFailure("abstract") }

    /// The cancellation that has come here cancels the sources, except those that another handler waits for.
    final override func cancelProducer() -> Bool {
        leaveInputs { _ in true }
        releaseInputs()
        return true
    }

    /// Is cancelled, and settles after its sources. From now on their outcomes are only counted.
    final func endWithInputs(rejectedWith error: (any Error)?) {
        rejection = .some(error)
        releaseInputs()
    }

    /// If it ends with its inputs: leaves the sources that the cancellation has not reached, or has ended at once.
    final func leaveInputsThatGoOn() {
        guard rejection != nil else { return }
        // A node that is queued brings an outcome.
        outstanding -= leaveInputs { $0.upstream.load().source?.isEndingLater == false }
        endIfNothingIsOutstanding(.noProducer)
    }

    final override var asCombinator: CombinatorCore? { self }

    /// Whether the result needs all sources, and not one of them.
    var needsAllInputs: Bool { true }

    /// Counts one more source.
    final func begin() { outstanding += 1 }

    /// Releases everything that is kept only until the result settles.
    func releaseInputs() { preconditionFailure("abstract") }

    /// Counts a source that has settled, or is not waited for any more.
    final func inputDidEnd(_ error: @autoclosure () -> PromiseError = .noProducer) {
        outstanding -= 1
        endIfNothingIsOutstanding(error())
    }

    @inline(__always)
    private func endIfNothingIsOutstanding(_ error: @autoclosure () -> PromiseError) {
        guard outstanding == 0, isOpen else { return }
        if marks.contains(.isEndingCancelled) {
            // Otherwise the cancellation in progress is about to settle it.
            guard let rejection else { return }
            rejectCancelled(with: rejection, at: nil)
        } else {
            producerDidEnd(error())
        }
        releaseInputs()
    }
}
