import Reactor
import Synchronization

/// A cancellation on its way up: from the promise that was cancelled to the promise that it waits for, and so on, as long as no
/// other handler waits there.
///
/// Its order is that of a rejection. A core that waits for a clean-up, or for a core that waits for one, does not settle when
/// it is cancelled. It loses its operation, and is rejected when the promise above it has been.
struct CancellationClimb {
    /// Where the core that is being cancelled is.
    enum Position {
        /// No clean-up is above it: it settles at once.
        case free
        /// It is the topmost core that does not settle at once.
        case last
        /// The promise that it waits for does not settle at once.
        case behind
    }

    private(set) var position = Position.free
    /// What is above.
    private var survey = CleanUpSurvey()
    /// The topmost clean-up.
    private var run: CancelledRun?

    /// Without a clean-up.
    init() {}

    init(from core: PromiseCore, _ request: CancellationRequest) {
        survey = CleanUpSurvey(from: core.rootRef, sparesWanted: request.sparesWanted)
    }

    /// For a source of a combinator that this cancellation has come to.
    func branch(to source: PromiseCore) -> CancellationClimb {
        guard let above = survey.ofSource(source) else { return CancellationClimb(from: source, .unobserved) }
        var climb = CancellationClimb()
        climb.survey = above
        return climb
    }

    /// Has `cleanUp` run at the end of the climb.
    mutating func runLast(_ cleanUp: CancelledRun) {
        // A second one, if code that ran on the way has changed the chain.
        end()
        run = cleanUp
    }

    private mutating func end() {
        if let run = run.take() { EventLoop.ofCurrentThread.enqueue(run) }
    }

    /// Goes to the next core.
    private mutating func rise() {
        position = survey.count == 0 ? .free : survey.count == 1 ? .last : .behind
        survey.count = max(survey.count - 1, 0)
    }

    // MARK: Steps

    /// Cancels `core`, and then what it leads to. On the thread of the core, if it has one.
    mutating func cancel(_ core: PromiseCore, _ request: CancellationRequest) {
        // A loop instead of a recursion: a chain may be a million long.
        var next = step(core, request)
        while let (core, request) = next { next = step(core, request) }
        // Last, as a rejection comes to it: behind the hooks of the work above.
        end()
    }

    /// A core to cancel, with the request for it: the source that a core was waiting for.
    private typealias NextCancellation = (PromiseCore, CancellationRequest)?

    /// Cancels this core alone.
    private mutating func step(_ core: PromiseCore, _ request: CancellationRequest) -> NextCancellation {
        if core.role.contains(.externallySettled) { return stepExternally(core, request) }
        guard core.state.load().isClaimable, let loop = core.loop else { return nil }
        if loop == .ofThisThread {
            // What the end of the loop would do is not to depend on the order in which it releases things.
            if EventLoop.ofCurrentThread.hasEnded { return nil }
            return stepHere(core, request).map { ($0, .unobserved) }
        }
        // While it is pending, its loop still exists.
        loop.post(InternalJob { core.cancel(request) }) { core.state.load().isClaimable }
        return nil
    }

    /// Cancels a core that any thread may settle.
    private mutating func stepExternally(_ core: PromiseCore, _ request: CancellationRequest) -> NextCancellation {
        guard !request.sparesWanted || !core.isWanted else { return nil }
        rise()
        let stopping = core.cancelExternally(with: request.error)
        if case .stopped(let source) = stopping {
            let settle = {
                core.reject(by: request, at: core.callSite)
                core.didCancel()
            }
            if let source, source.isBehindCleanUps { _ = AfterCleanUps(source, on: nil, settle) } else { settle() }
        }
        guard let source = stopping.source else { return nil }
        // The core cannot be looked through, since another thread may settle it.
        survey = CleanUpSurvey(from: source.rootRef, sparesWanted: true)
        return (source, .unobserved)
    }

    /// Cancels a core of this thread.
    /// - Returns: the source that it was waiting for.
    private mutating func stepHere(_ core: PromiseCore, _ request: CancellationRequest) -> PromiseCore? {
        guard !request.sparesWanted || !core.isWanted else { return nil }
        rise()
        if request.isOutOfTime { position = .free }
        // The promise that a handler has returned settles this core.
        let producer = core.settlingCore
        switch producer.stop(with: request.error, &self) {
        case .refused: return nil
        case .willEnd(let source): return source
        case .stopped(let source):
            // The producer may be running right now, and end later.
            if producer !== core { producer.state.markClaimed() }
            // Code that ran when the operation was destroyed may have settled this core first.
            if core.isOpen && core.settled == nil {
                core.reject(by: request, at: nil)
            }
            return source
        }
    }
}
