import Reactor

/// The result of a combinator: a promise that several sources settle together.
// @unchecked: accessed only on its loop's thread, with PromiseCore's exceptions.
@usableFromInline
class CombinatorCore: PromiseCore, @unchecked Sendable {
    /// The number of nodes that have not run, plus one while sources are being added.
    @exclusivity(unchecked) private final var outstanding = 1
    /// The cancellation that rejects the result once the remaining sources have settled.
    private var cancellation: FirstCancellation?

    init(code: CoreCode) {
        super.init(state: .pending, loop: .ofThisThread, code: code)
    }

    final override var asCombinator: CombinatorCore? { self }

    // MARK: What subclasses do

    /// The waiters for the sources that are still awaited.
    var inputs: [PromiseCore] { preconditionFailure("abstract") }

    /// True when the result cannot be fulfilled before all sources have settled.
    var needsAllInputs: Bool { true }

    /// Handles a source's outcome, and consumes the reference to the source. Must end by calling `inputDidEnd`.
    func inputDidSettle(_ index: Int, _ source: AnySource) { preconditionFailure("abstract") }

    /// Like `inputDidSettle`, for a source without an outcome: a cancellation has left the source, or the loop is
    /// ending.
    func inputWillNotCome(_ index: Int) { preconditionFailure("abstract") }

    /// Releases the settled sources or closures kept for the result.
    func releaseKept() { preconditionFailure("abstract") }

    // MARK: Counting

    final func begin() { outstanding += 1 }

    /// Counts a source that has settled, or is no longer awaited. The last call settles the result.
    final func inputDidEnd(_ error: @autoclosure () -> PromiseError = .noProducer) {
        outstanding -= 1
        guard outstanding == 0, isOpen else { return }
        if let cancellation {
            rejectCancelled(with: cancellation.error, at: nil)
        } else {
            producerDidEnd(error())
        }
        releaseKept()
    }

    // MARK: Cancellation

    /// True when a cancellation will reject the result. Until then sources are counted, and their outcomes ignored.
    final var isCancelling: Bool { cancellation != nil }

    /// Begins a cancellation of the result and its sources. The caller must then call `inputDidEnd`.
    final func beginCancelling(with error: (any Error)?) {
        begin()
        if cancellation == nil { cancellation = FirstCancellation(error: error) }
        releaseKept()
    }
}
