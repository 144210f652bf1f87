import Reactor

/// The promise of an operator with `on:`, whose closure runs as a job of a dispatcher.
///
/// The thread that claims the promise settles it. A waiter in the source's list passes the outcome on, inline, on the
/// thread that settles the source. That waiter, the job, a cancellation, and the release of an unrun job compete: the
/// first to change the stage, under a lock, takes the next step.
// @unchecked: for PromiseCore's reasons. The properties are constant, and `progress` has a lock. Only the party that
// has taken a closure out of `progress` calls it, and only the thread that settles the source calls `plan`.
final class DispatchedPromise: PromiseCore, @unchecked Sendable {
    enum Outcome {
        case fulfilled((PromiseCore) -> Void)
        case error(any Error, from: CallSite?)
        /// The outcome of the promise that the closure returned.
        case following(PromiseCore)

        static func value<Value>(_ value: Value) -> Outcome { .fulfilled { $0.fulfill(value) } }

        static func same<Value>(_ source: Source<Value>) -> Outcome {
            if source.isFulfilled { return .value(source.value) }
            return .error(source.error, from: source.callSite)
        }
    }

    /// Decides how to handle the source's outcome. Called on the thread that settles the source.
    typealias Plan = (AnySource) -> DispatchStep

    enum DispatchStep {
        /// The closure does not handle this outcome.
        case pass(Outcome)
        case dispatch(Work)
    }

    struct Work {
        let run: () throws -> Outcome
        /// Makes the outcome if the dispatcher does not run the job. By default that is an error.
        var otherwise: (() -> Outcome)?
    }

    private typealias Place = (core: PromiseCore, waiter: PromiseCore)

    // The next stage for each stage and event. `=` means the same stage; the closure decides when it ends.
    //
    //                 outcome arrives   job runs   not run   closure ends         cancelled
    //     waiting     queued, ended                                               = and climbs
    //     queued                        running    running                        ended; = if it cleans up
    //     running                                            following, ended     =
    //     following   ended                                                       = and climbs
    //
    // A job is counted (`Jobs`) from `queued` on. A pool's job is counted until it returns, a cancellation takes it out
    // of the queue, or `didNotRun`; any other job, until the promise settles.
    private struct Progress {
        var stage = DispatchStage.waiting
        /// Set only while the promise waits for its source: the dispatcher may retain the job, so the job must not
        /// retain the dispatcher.
        var dispatcher: (any Dispatcher)?
        var plan: Plan?
        var work: Work?
        var poolJob: (workers: ThreadPoolWorkers, job: PoolJob)?
        /// The promise that this one waits for or follows, and the waiter in its list.
        var place: Place?
        var cancellation = CancelState.none

        var awaitsCancellation: Bool { if case .awaited = cancellation { true } else { false } }
        var isOverruled: Bool { if case .overruled = cancellation { true } else { false } }
    }

    private enum CancelState {
        case none
        /// The next outcome counts as the cancellation.
        case awaited(FirstCancellation)
        /// The cancellation has entered the awaited promise, and arrives as its outcome, or has arrived.
        case entered(FirstCancellation)
        /// The cancellation came while the closure ran or was about to; its result does not count.
        case overruled(FirstCancellation)

        var first: FirstCancellation? {
            switch self {
            case .none: nil
            case .awaited(let first), .entered(let first), .overruled(let first): first
            }
        }

        /// The error that replaces the outcome, if any.
        var rejection: (any Error)? {
            switch self {
            case .none: nil
            case .entered(let first): first.error
            case .awaited(let first), .overruled(let first): first.error ?? PromiseError.asCancellation
            }
        }

        mutating func cancel(at stage: DispatchStage, with error: (any Error)?) {
            let first = first ?? FirstCancellation(error: error)
            switch (stage, self) {
            case (.ended, _), (_, .overruled): break
            case (.waiting, _), (.following, _): self = .awaited(first)
            case (.queued, _), (.running, _): self = .overruled(first)
            }
        }

        mutating func enter() {
            if case .awaited(let first) = self { self = .entered(first) }
        }
    }

    private let progress: LockedValue<Progress>
    private let madeAt: CallSite
    /// The loop of the thread that attached the handler, or, within a pool's job, the loop that the job runs for.
    private let home: LoopRemote
    private let jobs: Jobs
    /// The pool that runs the job, if the dispatcher is one.
    let pool: ObjectIdentifier?
    private let isGuarantee: Bool
    /// True when a cancellation also runs the closure.
    private let cleansUp: Bool

    private let passOn: (AnySource) -> Outcome

    fileprivate init<Value>(
        of type: Value.Type, on dispatcher: (any Dispatcher)?, isGuarantee: Bool, cleansUp: Bool, _ callSite: CallSite,
        _ plan: @escaping Plan
    ) {
        madeAt = callSite
        self.isGuarantee = isGuarantee
        self.cleansUp = cleansUp
        passOn = { .same($0.of(Value.self)) }
        pool = (dispatcher as? ThreadPool).map { ObjectIdentifier($0.threads) }
        jobs = pool != nil ? .ofPool : dispatcher == nil ? .none : .ofOthers
        home = jobs == .ofPool ? EventLoop.ofCurrentThread.loopToNotify : EventLoop.ofCurrentThread.remote
        progress = LockedValue(Progress(dispatcher: dispatcher, plan: plan))
        super.init(state: .pending, loop: .ofThisThread, role: .externallySettled, code: .of(Follow<Value>.self))
    }

    fileprivate func start(after source: PromiseCore) { wait(for: source, at: .waiting) { $0.sourceDidSettle($1) } }

    override var callSite: CallSite? { madeAt }

    override func placeOfJob(in pool: ObjectIdentifier) -> (isQueued: Bool, behind: PromiseCore?) {
        progress.withLock { ($0.stage == .queued && self.pool == pool, $0.place?.core) }
    }

    // MARK: Stages

    /// - Returns: the previous stage's fields, to be released outside the lock; `nil` if another party was faster.
    private func leave(_ stage: DispatchStage, for next: DispatchStage, _ work: Work? = nil) -> Progress? {
        progress.withLock { progress in
            guard progress.stage == stage else { return nil }
            let previous = progress
            progress = Progress(stage: next, work: work, cancellation: previous.cancellation)
            progress.cancellation.enter()
            return previous
        }
    }

    private func wait(
        for core: PromiseCore, at stage: DispatchStage, _ didSettle: @escaping (DispatchedPromise, AnySource) -> Void
    ) {
        let waiter = PromiseCore(inline: Notification { [self] in didSettle(self, $0) })
        core.attach(waiter)
        let isCancelled = progress.withLock { progress in
            guard progress.stage == stage else { return false }
            progress.place = (core, waiter)
            return progress.awaitsCancellation || progress.isOverruled
        }
        // Another thread cancelled it, or it was cancelled while the closure ran.
        if isCancelled { cancel() }
    }

    private func sourceDidSettle(_ source: AnySource) {
        let isCancelled = progress.withLock { $0.awaitsCancellation }
        let source = isCancelled ? AnySource(PromiseCore.plainlyCancelled.ref, isFulfilled: false) : source
        nextStep(after: source, isCancellation: isCancelled)?()
    }

    // Returns the next step, which runs after `plan` is released: nobody sees the outcome before that.
    private func nextStep(after source: AnySource, isCancellation: Bool) -> (() -> Void)? {
        guard let plan = progress.withLock({ $0.plan }) else { return nil }
        switch plan(source) {
        case .pass(let outcome):
            guard let previous = leave(.waiting, for: .ended) else { return nil }
            // Another thread has cancelled it after the outcome arrived.
            let isLate = previous.awaitsCancellation && !isCancellation
            return { self.conclude(isLate ? .error(PromiseError.asCancellation, from: nil) : outcome) }
        case .dispatch(let work):
            // Before the job is queued, since another party may then end the count.
            jobs.begin(home)
            if let previous = leave(.waiting, for: .queued, work) {
                if previous.awaitsCancellation && !isCancellation { cancel() }
                return { self.dispatch(on: previous.dispatcher) }
            }
            jobs.end(home)
            return nil
        }
    }

    private func dispatch(on dispatcher: (any Dispatcher)?) {
        guard let dispatcher else { return runJob() }
        let ticket = Ticket(self)
        do {
            if let pool = dispatcher as? ThreadPool {
                try queue(PoolJob { ticket.promise.runJob() }, at: pool.threads)
            } else {
                try dispatcher.dispatch { ticket.promise.runJob() }
            }
        } catch { didNotRun(error) }
        // If released before the `catch`, the ticket would report its own error first.
        withExtendedLifetime(ticket) {}
    }

    // The pool, its job and this promise retain each other until a thread takes the job or a cancellation withdraws it.
    private func queue(_ job: PoolJob, at workers: ThreadPoolWorkers) throws {
        try workers.take(job)
        let isCancelled = progress.withLock { progress in
            if progress.stage == .queued { progress.poolJob = (workers, job) }
            return progress.stage == .ended
        }
        if isCancelled { workers.withdraw(job) }
    }

    private func runJob() {
        var work = leave(.queued, for: .running)?.work
        guard work != nil else { return }
        if jobs == .ofPool {
            let isDone = EventLoop.ofCurrentThread.work(for: home) { conclude(outcome(of: &work)) }
            if isDone { home.endExternalWork() }
        } else {
            conclude(outcome(of: &work))
        }
    }

    private func outcome(of work: inout Work?) -> Outcome {
        guard let work = work.take() else { preconditionFailure("a job has run twice") }
        do { return try work.run() } catch { return .error(error, from: madeAt) }
    }

    private func conclude(_ outcome: Outcome) {
        switch outcome {
        case .fulfilled(let fulfill): settle { fulfill(self) }
        case .error(let error, let callSite): settle { reject(error, at: callSite) }
        case .following(let inner): waitForReturned(inner)
        }
    }

    private func waitForReturned(_ inner: PromiseCore) {
        _ = leave(.running, for: .following)
        if inner === self {
            precondition(!isGuarantee, "a handler returned its own guarantee, which would then wait for itself")
            return settle { reject(PromiseError.returnedSelf) }
        }
        if Tracing.isOn { Tracing.adopt(self, inner) }
        wait(for: inner, at: .following) { $0.conclude($0.passOn($1)) }
    }

    private func settle(_ body: () -> Void) {
        let previous = progress.withLock { progress in
            defer { progress = Progress(stage: .ended) }
            return progress
        }
        guard claim() else { return }
        if let error = previous.cancellation.rejection { rejectCancelled(with: error, at: madeAt) } else { body() }
        if jobs == .ofOthers && previous.stage.isElsewhere { jobs.end(home) }
    }

    // MARK: Without a run

    fileprivate func didNotRun(_ error: (any Error)?) {
        guard let previous = leave(.queued, for: .running) else { return }
        let (otherwise, isCancelled) = (previous.work?.otherwise, previous.cancellation.rejection != nil)
        // Unless the promise is rejected, the outcome does not carry the error, which is then reported.
        let isRejected = otherwise == nil && !isCancelled && !isGuarantee
        if let error {
            if !isRejected { Reports.unhandled(error, provenance(callSite: madeAt)) }
        } else if !isCancelled {
            conf.log(.abandoned(provenance(callSite: madeAt)))
        }
        if let otherwise {
            conclude(otherwise())
        } else {
            settle { reject(isRejected ? error ?? PromiseError.noProducer : PromiseError.noProducer) }
        }
        if jobs == .ofPool { jobs.end(home) }
    }

    // MARK: Cancellation

    // A promise that waits or follows receives the error from its source. (If it has not stored its place yet, `wait`
    // cancels it again.) A queued job is dropped, unless it cleans up. A running job decides when the promise ends.
    override func cancelExternally(with error: (any Error)?) -> Cancellation.Step {
        // Releases the closures outside the lock.
        let previous = progress.withLock { progress in
            progress.cancellation.cancel(at: progress.stage, with: error)
            let previous = progress
            if progress.stage == .queued && !cleansUp { progress = Progress(stage: .ended) }
            return previous
        }
        if let (source, waiter) = previous.place { return .climb(to: source, over: waiter, of: self) }
        switch previous.stage {
        case .queued where !cleansUp: dropJob(previous)
        // The library's own closures can check this.
        case .queued, .running: annotate(.isDecidedByCancellation)
        case .waiting, .following: break
        case .ended: return .cannotStop
        }
        return .stopped
    }

    override func cancellationDidClimb(over waiter: PromiseCore) {
        progress.withLock { if $0.place?.waiter === waiter { $0.cancellation.enter() } }
    }

    private func dropJob(_ previous: Progress) {
        // Then the job no longer counts in the pool's queue.
        if let (workers, job) = previous.poolJob { workers.withdraw(job) }
        // Otherwise a loop that waits only for the pool would end before the handlers run.
        home.beginExternalWork()
        if claim() { rejectCancelled(with: previous.cancellation.first?.error, at: madeAt) }
        jobs.end(home)
        home.endExternalWork()
    }
}

private enum DispatchStage {
    case waiting, queued, running, following, ended

    var isElsewhere: Bool { self == .queued || self == .running || self == .following }
}

private enum Jobs {
    case none
    /// Keeps the loop alive until the job has returned.
    case ofPool
    /// Tells a `hang` on the loop that it may be woken, until the promise has settled.
    case ofOthers

    func begin(_ loop: LoopRemote) {
        switch self {
        case .none: break
        case .ofPool: loop.beginExternalWork()
        case .ofOthers: loop.beginDispatchedJob()
        }
    }

    func end(_ loop: LoopRemote) {
        switch self {
        case .none: break
        case .ofPool: loop.endExternalWork()
        case .ofOthers: loop.endDispatchedJob()
        }
    }
}

/// Held by the job, to notice its release.
private final class Ticket: Sendable {
    let promise: DispatchedPromise

    init(_ promise: DispatchedPromise) { self.promise = promise }

    deinit { promise.didNotRun(nil) }
}

extension Thenable {
    /// Makes a promise of type `type` from this one. `plan` makes the closure; `dispatcher` runs it, or, if `nil`, it
    /// runs inline.
    /// - Parameter cleansUp: true if a cancellation also runs the closure, with the cancellation as the outcome.
    func dispatched<Made: Thenable>(
        _ operation: StaticString, on dispatcher: (any Dispatcher)?, as type: Made.Type, isGuarantee: Bool = false,
        cleansUp: Bool = false, _ file: StaticString, _ line: UInt,
        _ plan: @escaping (Source<T>) -> DispatchedPromise.DispatchStep
    ) -> PromiseCore {
        let source = asPromise().core
        let promise = DispatchedPromise(
            of: Made.T.self, on: dispatcher, isGuarantee: isGuarantee, cleansUp: cleansUp, CallSite(file, line)
        ) { plan($0.of(T.self)) }
        // Before the start, so that the promise that the closure returns is recorded with this one.
        _ = promise.traced(operation, after: source, type, file, line)
        promise.start(after: source)
        return promise
    }
}
