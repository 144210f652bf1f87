import Reactor

/// The result of a combinator: a promise that several others settle together.
// @unchecked: accessed only on its loop's thread, except for what PromiseCore itself allows other threads.
@usableFromInline
class CombinatorCore: PromiseCore, @unchecked Sendable {
    /// Nodes that have not run yet, plus one for the code that is adding sources.
    @exclusivity(unchecked) private final var outstanding = 1

    init(code: @escaping (PromiseCore, Phase) -> Void) {
        super.init(state: State.pending, loop: EventLoop.addressOfThisThread, code: code)
    }

    /// The source at `index` has settled. Consumes the reference to it. Must end with `inputDidEnd`.
    func settled(_ index: Int, _ source: Unmanaged<PromiseCore>, _ kind: UInt) { preconditionFailure("abstract") }

    /// The source at `index` will never settle. Must end with `inputDidEnd`.
    func abandoned(_ index: Int, _ error: @autoclosure () -> PromiseError = .noProducer) {
        preconditionFailure("abstract")
    }

    /// Leaves the pending sources, and calls `each` with those that the result no longer needs.
    func leaveInputs(_ each: (PromiseCore) -> Void) { preconditionFailure("abstract") }

    /// Cancels the sources, except those that another handler waits for.
    final override func cancelProducer() -> Bool {
        // The cancellation that has come here has looked at all of them: nested ones do not look again.
        leaveInputs { $0.enqueueCancel(CancellationClimb()) }
        return true
    }

    final override func cancelProducerLater(with error: (any Error)?, _ climb: CancellationClimb) -> Bool {
        isEndingCancelled = true
        var sources: [PromiseCore] = []
        leaveInputs {
            sources.append($0)
            $0.enqueueCancel(climb.branch(to: $0))
        }
        // Behind these cancellations: then it is known which of the sources end later.
        EventLoop.ofCurrentThread.runInline(.passRetained(EndOfInputs(self, error, sources)))
        return true
    }

    /// Counts one more source.
    final func begin() { outstanding += 1 }

    /// Releases what is kept only until the result settles.
    func releaseInputs() { preconditionFailure("abstract") }

    /// Counts a source that has settled, or that never will.
    final func inputDidEnd(_ error: @autoclosure () -> PromiseError = .noProducer) {
        outstanding -= 1
        guard outstanding == 0, isOpen else { return }
        producerDidEnd(error())
        releaseInputs()
    }
}

/// Rejects a cancelled combinator once the last of its sources has settled that do not settle at once.
private final class EndOfInputs: Job {
    private let end: End
    private let sources: [PromiseCore]

    init(_ core: CombinatorCore, _ error: (any Error)?, _ sources: [PromiseCore]) {
        end = End(core, error)
        self.sources = sources
        super.init()
    }

    override func run() {
        for source in sources where source.isEndingLater {
            _ = AfterCleanUps(source, on: EventLoop.addressOfThisThread) { [end] in _ = end }
        }
    }

    override var isReportedUndelivered: Bool { false }

    /// Its last reference is released when the last source has settled.
    private final class End {
        private let core: CombinatorCore
        private let error: (any Error)?

        init(_ core: CombinatorCore, _ error: (any Error)?) {
            self.core = core
            self.error = error
        }

        deinit {
            guard core.isOpen && core.settled == nil else { return }
            core.reject(
                error ?? PromiseCore.cancellationError, from: nil, as: PromiseCore.rejection(by: .itself(error)))
        }
    }
}

extension PromiseCore {
    /// Whether a cancellation has reached it and it settles later.
    fileprivate var isEndingLater: Bool {
        guard settled == nil else { return false }
        let core = root
        if core.role.contains(.externallySettled) { return !core.isOpen }
        // The marks of another thread's core change meanwhile, and its cancellation is only on its way there.
        guard core.loop == EventLoop.addressOfThisThread else { return false }
        let word = core.upstream.load(ordering: .acquiring)
        return (word & Upstream.mark == Upstream.adopted ? Self.core(word) : core).isEndingCancelled
    }
}
