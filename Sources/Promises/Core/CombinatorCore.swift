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

    /// The source at `index` will not bring an outcome: a cancellation has left it, or the loop is ending. Must end with
    /// `inputDidEnd`.
    func inputWillNotCome(_ index: Int) { preconditionFailure("abstract") }

    /// The cancellation that rejects the result, once the sources that are left have settled: its error, if it has one
    /// of its own.
    private var rejection: (any Error)??

    /// The nodes that wait for sources.
    var inputs: [PromiseCore] { preconditionFailure("abstract") }

    /// True when a cancellation rejects the result after its sources have ended, whose outcomes are only counted then.
    final var isCancelling: Bool { rejection != nil }

    /// Is cancelled, as its sources will be: a call of `inputDidEnd` follows.
    final func beginCancelling(with error: (any Error)?) {
        begin()
        if rejection == nil { rejection = .some(error) }
        releaseInputs()
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
        if let rejection {
            rejectCancelled(with: rejection, at: nil)
        } else {
            producerDidEnd(error())
        }
        releaseInputs()
    }
}
