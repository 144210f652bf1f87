import Reactor
import Synchronization

/// A task that waits for a promise, as the waiter in that promise's list.
///
/// It is an executor too, which the task goes to in order to wait: that of a `SuspensionActor`. It runs the task's one job when
/// the wait has ended, and all that job does is to go back to where the task came from.
///
/// Several may end the wait, of which one lets the task go: who settles the promise; who lets its waiters go since nobody
/// will; who cancels the task. That one is decided by `phase`, so the job runs once.
// @unchecked: as PromiseCore. `job` is written once, before `phase` says so (releasing), and read by the one that takes `phase` to
// its end, or finds that it is there (acquiring).
@usableFromInline
final class AwaitingTask: PromiseCore, @unchecked Sendable {
    private enum Phase {
        /// The task has not come yet.
        static var idle: UInt8 { 0 }
        /// The task is here; the waiter is on its way into the promise's list.
        static var attaching: UInt8 { 1 }
        /// It stands there, and may be withdrawn.
        static var waiting: UInt8 { 2 }
        /// How it ended: the promise has told us, or will not tell anybody. What it told is in `upstream`, owned.
        static var told: UInt8 { 3 }
        /// How it ended: the task was cancelled.
        static var cancelled: UInt8 { 4 }
    }

    private let phase = Atomic(Phase.idle)
    // Whoever waits holds the promise meanwhile.
    private let promise: Unmanaged<PromiseCore>
    @exclusivity(unchecked) private var job: UnownedJob?

    private init(until promise: PromiseCore) {
        self.promise = .passUnretained(promise)
        super.init(state: State.pending, loop: nil) { core, phase in
            unsafeDowncast(core, to: AwaitingTask.self).sourceDidSettle()
            // The reference is ours. The outcome stays in `upstream` for the task, and goes with the waiter.
            if case .run = phase { Unmanaged.passUnretained(core).release() }
        }
    }

    // It has no payload: its drop resumes the task.
    override var dropsOnlyPayload: Bool { false }

    /// Returns when the promise has settled, or nobody is left who could settle it.
    @usableFromInline
    static func suspend(until promise: PromiseCore, _ isolation: isolated (any Actor)? = #isolation) async
        -> AwaitingTask
    {
        let waiter = AwaitingTask(until: promise)
        await SuspensionActor(waiter).enter()
        return waiter
    }

    /// The same, or when the task is cancelled; the promise then is too, unless others wait for it.
    @usableFromInline
    static func suspendOrCancel(
        until promise: PromiseCore, _ isolation: isolated (any Actor)? = #isolation
    ) async -> AwaitingTask {
        let waiter = AwaitingTask(until: promise)
        await withTaskCancellationHandler {
            // A closure that does not name the actor leaves it, for Swift's pool and back again.
            _ = isolation
            if waiter.isCancelled { return promise.cancelIfUnobserved() }
            await SuspensionActor(waiter).enter()
        } onCancel: {
            waiter.cancel()
        }
        return waiter
    }

    /// What came of it. Once the task has gone on.
    @usableFromInline
    func outcome<T>() throws -> T {
        if isCancelled { throw CancellationError() }
        let word = upstream.load(ordering: .acquiring)
        switch word & Upstream.mark {
        case Upstream.fulfilled: return Self.core(word).value(as: T.self)
        case Upstream.rejected: throw Self.core(word).error
        // Let go without an outcome.
        default: throw PromiseError.abandoned
        }
    }

    private var isCancelled: Bool { phase.load(ordering: .acquiring) == Phase.cancelled }

    // MARK: How it begins

    private func begin(_ job: UnownedJob) {
        self.job = job
        if pass(from: Phase.idle, to: Phase.attaching) {
            promise._withUnsafeGuaranteedRef { $0.attach(self) }
            if pass(from: Phase.attaching, to: Phase.waiting) { return }
            // It ended meanwhile. A cancellation has found nothing that could be withdrawn.
            if isCancelled { withdrawAndCancel() }
        } else {
            cancelPromise()
        }
        // Elsewhere: the task is about to leave this thread.
        resumeElsewhere()
    }

    // MARK: How it ends

    // The handler of a cancellation ends before the wait does, so the promise is there. Decided on its own loop: a read that is
    // cancelled from elsewhere may just bring its bytes, and nobody would have them.
    private func cancel() {
        while true {
            let root = promise._withUnsafeGuaranteedRef { $0.root }
            guard !root.role.contains(.externallySettled), let loop = root.loop, loop != EventLoop.addressOfThisThread
            else {
                return cancelOnOwnThread()
            }
            var isLinked = false
            EventLoop.post(CancelledWait(self), toLoopAt: loop) {
                isLinked = root.root !== root
                // Otherwise it has settled, and we are told.
                return !isLinked && root.settled == nil
            }
            if !isLinked { return }
        }
    }

    fileprivate func cancelOnOwnThread() {
        guard end(as: Phase.cancelled) == Phase.waiting else { return }
        withdrawAndCancel()
        resume()
    }

    private func sourceDidSettle() {
        if end(as: Phase.told) == Phase.waiting { resume() }
    }

    private func withdrawAndCancel() {
        withdraw()
        cancelPromise()
    }

    private func cancelPromise() { promise._withUnsafeGuaranteedRef { $0.cancelIfUnobserved() } }

    private func pass(from old: UInt8, to new: UInt8) -> Bool {
        phase.compareExchange(expected: old, desired: new, ordering: .acquiringAndReleasing).exchanged
    }

    /// Ends the wait, if it has not ended; how far it had come is the answer. Who finds it `waiting` resumes the task; if it
    /// had not come so far, `begin` does.
    private func end(as end: UInt8) -> UInt8 {
        var seen = phase.load(ordering: .acquiring)
        while seen < Phase.told {
            let (done, now) = phase.weakCompareExchange(
                expected: seen, desired: end, ordering: .acquiringAndReleasing)
            if done { break }
            seen = now
        }
        return seen
    }

    private func resume() {
        // A thread that ends has lost what Swift's own pool needs to take a task from it.
        if EventLoop.isEndingOnThisThread { resumeElsewhere() } else { letGo() }
    }

    private func resumeElsewhere() {
        do { try Self.thread.dispatch { self.letGo() } } catch { letGo() }
    }

    // Of its own: those of async bodies may all be held by somebody who waits for us.
    private static let thread = try! ThreadPool(name: "resuming", threads: 1, queueLimit: .max)

    // As an executor of its own and not that of Swift's pool: on that one Swift would go on with the task right here, inside
    // the call that settles.
    private func letGo() { job?.runSynchronously(on: asUnownedSerialExecutor()) }
}

/// A cancellation on its way to the loop of the promise that is waited for.
private final class CancelledWait: Job {
    private let waiter: AwaitingTask

    init(_ waiter: AwaitingTask) {
        self.waiter = waiter
        super.init()
    }

    override func run() { waiter.cancelOnOwnThread() }

    override var isReportedUndelivered: Bool { false }
}

extension AwaitingTask: SerialExecutor {
    /// Called by Swift when the task comes.
    @usableFromInline
    func enqueue(_ job: consuming ExecutorJob) {
        // The task may be over, and have let go of us, before this returns.
        retain()
        begin(UnownedJob(job))
        Unmanaged.passUnretained(self).release()
    }

    @usableFromInline
    func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }
}

/// Where a task is while it waits: an actor whose executor is the waiter.
///
/// A continuation of Swift's would do, but resumes through Swift's pool, also a task of an actor on a loop: a thread of the
/// pool is woken, only to hand the task on to the loop that has just settled the promise. That took four times as long.
private actor SuspensionActor {
    private let waiter: AwaitingTask
    /// Of the actor, so that Swift must go there to touch it.
    private var hasEntered = false
    nonisolated var unownedExecutor: UnownedSerialExecutor { waiter.asUnownedSerialExecutor() }

    init(_ waiter: AwaitingTask) { self.waiter = waiter }

    func enter() { hasEntered = true }
}
