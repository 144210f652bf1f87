import Reactor

/// The result of a combinator: a promise that several sources settle together.
// @unchecked: accessed only on its loop's thread, with PromiseCore's exceptions.
@usableFromInline
class CombinatorCore: PromiseCore, @unchecked Sendable {
    /// Nodes that have not run, plus one for the code that is adding sources.
    @exclusivity(unchecked) private final var outstanding = 1

    init(code: CoreCode) {
        super.init(state: .pending, loop: .ofThisThread, code: code)
    }

    /// Consumes the reference to the source. Must end with `inputDidEnd`.
    func inputDidSettle(_ index: Int, _ source: AnySource) { preconditionFailure("abstract") }

    /// Like `inputDidSettle`, for a source that brings no outcome: a cancellation has left it, or the loop is ending.
    func inputWillNotCome(_ index: Int) { preconditionFailure("abstract") }

    /// The cancellation that rejects the result once the remaining sources have settled.
    private var cancellation: FirstCancellation?

    var inputs: [PromiseCore] { preconditionFailure("abstract") }

    /// True when a cancellation will reject the result. Until then the outcomes of sources are only counted.
    final var isCancelling: Bool { cancellation != nil }

    /// Begins a cancellation of the result and its sources. A call of `inputDidEnd` must follow.
    final func beginCancelling(with error: (any Error)?) {
        begin()
        if cancellation == nil { cancellation = FirstCancellation(error: error) }
        releaseInputs()
    }

    final override var asCombinator: CombinatorCore? { self }

    var needsAllInputs: Bool { true }

    final func begin() { outstanding += 1 }

    func releaseInputs() { preconditionFailure("abstract") }

    /// Counts a source that has settled, or is no longer awaited.
    final func inputDidEnd(_ error: @autoclosure () -> PromiseError = .noProducer) {
        outstanding -= 1
        endIfNothingIsOutstanding(error())
    }

    @inline(__always)
    private func endIfNothingIsOutstanding(_ error: @autoclosure () -> PromiseError) {
        guard outstanding == 0, isOpen else { return }
        if let cancellation {
            rejectCancelled(with: cancellation.error, at: nil)
        } else {
            producerDidEnd(error())
        }
        releaseInputs()
    }
}
