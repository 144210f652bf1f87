import Reactor
import Synchronization

/// The result of a combinator: a promise that several others settle together.
// @unchecked: accessed only on its loop's thread, except for what PromiseCore itself allows other threads.
@usableFromInline
class CombinatorCore: PromiseCore, @unchecked Sendable {
    /// Nodes that have not run yet, plus one for the code that is adding sources. Atomic, because the nodes of an ended
    /// loop are discarded by the threads that settle their sources. Those threads access nothing else of this object.
    private final let outstanding = Atomic<Int>(1)

    init(code: @escaping (PromiseCore, Phase) -> Void) {
        super.init(state: State.pending, loop: EventLoop.addressOfThisThread, code: code)
    }

    /// The source at `index` has settled. Consumes the reference to it. Must end with `inputDidEnd`.
    func settled(_ index: Int, _ source: Unmanaged<PromiseCore>, _ kind: UInt) { preconditionFailure("abstract") }

    /// The source at `index` will never settle. Must end with `inputDidEnd`.
    func abandoned(_ index: Int) { preconditionFailure("abstract") }

    /// Counts one more source.
    final func begin() { outstanding.add(1, ordering: .relaxed) }

    /// Releases what is kept only until the result settles.
    func releaseInputs() { preconditionFailure("abstract") }

    /// Counts a source that has settled, or that never will.
    final func inputDidEnd(_ error: @autoclosure () -> PromiseError = .noProducer) {
        guard outstanding.subtract(1, ordering: .acquiringAndReleasing).newValue == 0, isOpen else { return }
        // No node that could run on the loop's thread is left, so this may be any thread.
        producerDidEnd(error())
        releaseInputs()
    }
}
