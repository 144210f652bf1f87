import Reactor

/// The promise of an operator with `on:`, whose closure runs as a job of a dispatcher.
///
/// It is settled, like the promise of a resolver, by the thread that claims it. A waiter in the source's list passes
/// the outcome on, inline, on whichever thread settles the source. That waiter, the job, a cancellation, and the
/// release of a job that never ran compete for the next step: the first that changes the stage, under a lock, takes it.
// @unchecked: as PromiseCore. The properties are constant, and `progress` has a lock. A closure in there is called by
// the party that has taken it out, or, `plan`, by the one thread that settles the source.
final class DispatchedPromise: PromiseCore, @unchecked Sendable {
    enum Outcome {
        /// Fulfills the promise that it receives.
        case fulfilled((PromiseCore) -> Void)
        case error(any Error, from: CallSite?)
        /// The closure returned this promise; its outcome will be this one's.
        case following(PromiseCore)

        static func value<Value>(_ value: Value) -> Outcome { .fulfilled { $0.fulfill(value) } }

        /// The outcome of the source.
        static func same<Value>(_ source: Source<Value>) -> Outcome {
            if source.isFulfilled { return .value(source.value) }
            return .error(source.error, from: source.callSite)
        }
    }

    /// Decides what happens for the outcome of the source. Called on the thread that settles it.
    typealias Plan = (AnySource) -> DispatchStep

    enum DispatchStep {
        /// The closure does not handle this outcome.
        case pass(Outcome)
        case dispatch(Work)
    }

    struct Work {
        let run: () throws -> Outcome
        /// The outcome if the dispatcher does not run it; by default an error.
        var otherwise: (() -> Outcome)?
    }

    private typealias Place = (core: PromiseCore, waiter: PromiseCore)

    // The stage after each event; `=` where it stays, and the closure decides when it ends:
    //
    //                 outcome arrives   job runs   not run   closure ends         cancelled
    //     waiting     queued, ended                                               = and climbs
    //     queued                        running    running                        ended; = if it cleans up
    //     running                                            following, ended     =
    //     following   ended                                                       = and climbs
    //
    // The count of a job (`Jobs`) begins with `queued`. A pool's is ended by the job when it returns, by the cancellation
    // that takes it out of the queue, or by `didNotRun`; another's by the party that settles the promise.
    private struct Progress {
        var stage = DispatchStage.waiting
        /// Set while it waits for the source. Not longer: the dispatcher may retain the job, which must not retain the
        /// dispatcher.
        var dispatcher: (any Dispatcher)?
        var plan: Plan?
        /// Set while it is queued.
        var work: Work?
        /// Set while it is queued at a pool.
        var poolJob: (workers: ThreadPoolWorkers, job: PoolJob)?
        /// Set while it waits or follows: the promise that it waits for, and its waiter there.
        var place: Place?
        /// True while a cancellation replaces the outcome of the promise that it waits for: until the cancellation has
        /// climbed to that promise, whose outcome then counts.
        var isCancelled = false
        /// True if it was cancelled while its closure ran, or was about to: the result does not count.
        var isOverruled = false
        /// The first cancellation, with its error, if it has one of its own, which replaces the result.
        var first: (any Error)??

        mutating func cancel(with error: (any Error)?) {
            if first == nil { first = .some(error) }
            switch stage {
            case .waiting, .following: isCancelled = true
            case .queued, .running: isOverruled = true
            case .ended: break
            }
        }

        /// The error that replaces the result.
        var rejection: (any Error)? {
            (first ?? nil) ?? (isCancelled || isOverruled ? PromiseError.asCancellation : nil)
        }
    }

    private let progress: LockedValue<Progress>
    private let madeAt: CallSite
    /// The loop of the thread that attached the handler. If a pool's job attached it, the loop for which that job runs.
    private let home: LoopRemote
    private let jobs: Jobs
    /// The pool that runs the job, if the dispatcher is one.
    private let pool: ObjectIdentifier?
    private let isGuarantee: Bool
    /// Whether a cancellation makes the closure run.
    private let cleansUp: Bool

    /// Converts the outcome of another promise into one of this type.
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

    /// Goes from `stage` to `next`.
    /// - Returns: the previous stage's fields, to be released outside the lock; `nil` if another party was faster.
    private func leave(_ stage: DispatchStage, for next: DispatchStage, _ work: Work? = nil) -> Progress? {
        progress.withLock { progress in
            guard progress.stage == stage else { return nil }
            let previous = progress
            progress = Progress(stage: next, work: work, isOverruled: previous.isOverruled, first: previous.first)
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
            return progress.isCancelled || progress.isOverruled
        }
        // By another thread meanwhile, or while the closure ran: it climbs now.
        if isCancelled { cancel() }
    }

    private func sourceDidSettle(_ source: AnySource) {
        let isCancelled = progress.withLock { $0.isCancelled }
        let source = isCancelled ? AnySource(PromiseCore.plainlyCancelled.ref, isFulfilled: false) : source
        nextStep(after: source, isCancellation: isCancelled)?()
    }

    // This function and `outcome(of:)` have released the closure when they return: nobody sees the outcome before that.
    private func nextStep(after source: AnySource, isCancellation: Bool) -> (() -> Void)? {
        guard let plan = progress.withLock({ $0.plan }) else { return nil }
        switch plan(source) {
        case .pass(let outcome):
            guard let previous = leave(.waiting, for: .ended) else { return nil }
            // Another thread has cancelled it since it received the outcome.
            let isLate = previous.isCancelled && !isCancellation
            return { self.conclude(isLate ? .error(PromiseError.asCancellation, from: nil) : outcome) }
        case .dispatch(let work):
            // First: as soon as it is queued, another party may end the count.
            jobs.begin(home)
            if let previous = leave(.waiting, for: .queued, work) {
                if previous.isCancelled && !isCancellation { cancel() }
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
        // A ticket released before the error is caught would replace the error with its own.
        withExtendedLifetime(ticket) {}
    }

    // The pool, its job and this object retain each other until a thread has taken the job, or a cancellation has
    // withdrawn it.
    private func queue(_ job: PoolJob, at workers: ThreadPoolWorkers) throws {
        try workers.take(job)
        let isCancelled = progress.withLock { progress in
            if progress.stage == .queued { progress.poolJob = (workers, job) }
            return progress.stage == .ended
        }
        if isCancelled { workers.withdraw(job) }
    }

    /// The job.
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

    /// Settles with this outcome, or waits for the promise that the closure has returned.
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

    /// Settles as the cancellation says, or else by `body`.
    private func settle(_ body: () -> Void) {
        let previous = progress.withLock { progress in
            defer { progress = Progress(stage: .ended) }
            return progress
        }
        guard claim() else { return }
        if let error = previous.rejection { rejectCancelled(with: error, at: madeAt) } else { body() }
        if jobs == .ofOthers && previous.stage.isElsewhere { jobs.end(home) }
    }

    // MARK: Without a run

    /// The dispatcher has refused the job with `error`, or released it.
    fileprivate func didNotRun(_ error: (any Error)?) {
        guard let previous = leave(.queued, for: .running) else { return }
        let (otherwise, isCancelled) = (previous.work?.otherwise, previous.rejection != nil)
        // Otherwise its outcome does not tell the error.
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

    // A promise that waits or follows receives the error from above. (Before it has stored its place, `wait` cancels it
    // again.) Of a job that no thread has begun, and which does not clean up, the closure is released; one that runs decides
    // when the promise ends.
    override func cancelExternally(with error: (any Error)?) -> Cancellation.Step {
        // Its closures are released outside the lock.
        let previous = progress.withLock { progress in
            progress.cancel(with: error)
            let previous = progress
            if progress.stage == .queued && !cleansUp { progress = Progress(stage: .ended) }
            return previous
        }
        if let (source, waiter) = previous.place { return .climb(to: source, over: waiter, of: self) }
        switch previous.stage {
        case .queued where !cleansUp: dropJob(previous)
        // So a closure of the library can find out.
        case .queued, .running: annotate(.isDecidedByCancellation)
        case .waiting, .following: break
        case .ended: return .cannotStop
        }
        return .stopped
    }

    override func cancellationDidClimb(over waiter: PromiseCore) {
        progress.withLock { if $0.place?.waiter === waiter { $0.isCancelled = false } }
    }

    /// Rejects this promise, whose job was queued.
    private func dropJob(_ previous: Progress) {
        // So that it no longer counts in the pool's queue.
        if let (workers, job) = previous.poolJob { workers.withdraw(job) }
        // First: otherwise a loop that waits for the pool only would end before the handlers have run.
        home.beginExternalWork()
        if claim() { rejectCancelled(with: previous.first ?? nil, at: madeAt) }
        jobs.end(home)
        home.endExternalWork()
    }
}

private enum DispatchStage {
    case waiting, queued, running, following, ended

    /// Whether a dispatcher has the closure, or the promise that the closure returned is awaited.
    var isElsewhere: Bool { self == .queued || self == .running || self == .following }
}

/// How the loop of the thread that attached the handler counts its job.
private enum Jobs {
    case none
    /// The loop stays alive until the job has returned.
    case ofPool
    /// Until the promise has settled, a `hang` on the loop knows that it may be woken.
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

/// Held by the job of a dispatched promise, so that its release is noticed.
private final class Ticket: Sendable {
    let promise: DispatchedPromise

    init(_ promise: DispatchedPromise) { self.promise = promise }

    deinit { promise.didNotRun(nil) }
}

extension Thenable {
    /// Makes a promise of type `type` from this one, by a closure that `plan` gives to `dispatcher`; `nil` runs it
    /// inline.
    /// - Parameters:
    ///   - operation: the name of the operator.
    ///   - cleansUp: whether the closure also runs if the promise is cancelled, with the cancellation as the outcome.
    func dispatched<Made: Thenable>(
        _ operation: StaticString, on dispatcher: (any Dispatcher)?, as type: Made.Type, isGuarantee: Bool = false,
        cleansUp: Bool = false, _ file: StaticString, _ line: UInt,
        _ plan: @escaping (Source<T>) -> DispatchedPromise.DispatchStep
    ) -> PromiseCore {
        let source = asPromise().core
        let promise = DispatchedPromise(
            of: Made.T.self, on: dispatcher, isGuarantee: isGuarantee, cleansUp: cleansUp, CallSite(file, line)
        ) { plan($0.of(T.self)) }
        // First: the promise that the closure returns is recorded with this one.
        _ = promise.traced(operation, after: source, type, file, line)
        promise.start(after: source)
        return promise
    }
}
