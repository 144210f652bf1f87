import Reactor
import Synchronization

/// A task that waits in a promise's waiter list.
///
/// Also the executor of a `SuspensionActor`, to which the task hops in order to wait. When the wait ends, the executor
/// runs the task's single job, which only returns to where the task came from.
///
/// The wait ends when the promise settles, when its waiters are released because nothing can settle it, or when the
/// task is cancelled. `phase` picks the event that resumes the task, so the job runs exactly once.
// @unchecked: for the same reasons as PromiseCore. `job` is written once, before `phase` publishes it (releasing). It
// is read by the thread that moves `phase` to an end state or finds it there (acquiring).
@usableFromInline
final class AwaitingTask: PromiseCore, @unchecked Sendable {
    private enum WaitPhase {
        static var idle: UInt8 { 0 }
        /// The task has arrived, and its waiter is being added to the list.
        static var attaching: UInt8 { 1 }
        static var waiting: UInt8 { 2 }
        /// The promise ended the wait. `sourceWord` owns the outcome.
        static var notified: UInt8 { 3 }
        static var cancelled: UInt8 { 4 }
    }

    private let phase = Atomic(WaitPhase.idle)
    // The suspended caller retains the promise.
    private let promise: CoreRef
    @exclusivity(unchecked) private var job: UnownedJob?
    private let home: LoopRemote?

    private init(until promise: PromiseCore) {
        self.promise = promise.ref
        home = VirtualTasks.home(waitingFor: promise)
        let code = CoreCode { core, phase in
            core.as(AwaitingTask.self).sourceDidSettle()
            // The waiter owns this reference, and releases the outcome in `sourceWord` after the task has used it.
            if case .run = phase { core.release() }
        }
        // No payload: dropping the operation resumes the task.
        super.init(state: .pending, loop: nil, role: .isNotifiedOfDrop, code: code)
    }

    @usableFromInline
    static func suspend(until promise: PromiseCore, _ isolation: isolated (any Actor)? = #isolation) async
        -> AwaitingTask
    {
        let waiter = AwaitingTask(until: promise)
        await SuspensionActor(waiter).enter()
        return waiter
    }

    /// Suspends like `suspend`, but a cancellation of the task also ends the wait. It cancels the promise unless
    /// another handler waits.
    /// - Throws: `PromiseError.badInput`, after cancelling the promise, if the promise waits for an undriven loop.
    @usableFromInline
    static func suspendOrCancel(
        until promise: PromiseCore, _ type: Any.Type, _ isolation: isolated (any Actor)? = #isolation
    ) async throws -> AwaitingTask {
        if EventLoop.isNotingHandlers { try promise.refuseToWaitForUndrivenLoop(type, isolation) }
        let waiter = AwaitingTask(until: promise)
        await withTaskCancellationHandler {
            // Names the actor; otherwise, the closure would leave the actor for a round trip through Swift's pool.
            _ = isolation
            if waiter.isCancelled { return promise.cancelUnlessWanted() }
            await SuspensionActor(waiter).enter()
        } onCancel: {
            waiter.cancel()
        }
        return waiter
    }

    @usableFromInline
    func outcome<T>() throws -> T {
        if isCancelled { throw CancellationError() }
        let word = sourceWord.load()
        switch word.mark {
        case .fulfilled: return word.core.payload.value(as: T.self)
        case .rejected: throw word.core.payload.error
        case .none, .waiting, .linkedFrom, .taken: throw PromiseError.abandoned
        }
    }

    private var isCancelled: Bool { phase.load(ordering: .acquiring) == WaitPhase.cancelled }

    // MARK: Begin

    private func begin(_ job: UnownedJob) {
        self.job = job
        if pass(from: WaitPhase.idle, to: WaitPhase.attaching) {
            promise.borrow { $0.attach(self) }
            if pass(from: WaitPhase.attaching, to: WaitPhase.waiting) {
                // Not earlier: the loop would find no waiter, and could advance its clock while this thread still adds
                // the waiter.
                home?.beginWaitingForLoop()
                return
            }
            // The wait ended during `attach`, when a cancellation found no waiter to withdraw.
            if isCancelled { withdrawAndCancel() }
        } else {
            cancelPromise()
        }
        // On another thread, because the task is about to leave this one.
        resumeElsewhere()
    }

    // MARK: End

    // Swift's cancellation handler returns before the wait ends, so the promise still exists. Its own loop decides,
    // unless it has ended: it may be delivering a read's bytes, which a cancellation from another thread would lose.
    private func cancel() {
        let promise = promise.object
        guard !promise.role.contains(.externallySettled), let loop = promise.loop, loop != .ofThisThread else {
            return cancelOnOwnThread()
        }
        loop.borrow { $0.performCleanup { [self] in cancelOnOwnThread() } }
    }

    private func cancelOnOwnThread() {
        guard end(as: WaitPhase.cancelled) == WaitPhase.waiting else { return }
        withdrawAndCancel()
        resume()
    }

    private func sourceDidSettle() {
        if end(as: WaitPhase.notified) == WaitPhase.waiting { resume() }
    }

    private func withdrawAndCancel() {
        withdraw()
        cancelPromise()
    }

    private func cancelPromise() { promise.borrow { $0.cancelUnlessWanted() } }

    private func pass(from old: UInt8, to new: UInt8) -> Bool {
        phase.compareExchange(expected: old, desired: new, ordering: .acquiringAndReleasing).exchanged
    }

    /// Ends the wait, unless it has ended, and returns the previous phase. After `waiting`, the caller must resume the
    /// task. In an earlier phase, `begin` resumes it.
    private func end(as end: UInt8) -> UInt8 {
        var seen = phase.load(ordering: .acquiring)
        while seen < WaitPhase.notified {
            let (done, now) = phase.weakCompareExchange(
                expected: seen, desired: end, ordering: .acquiringAndReleasing)
            if done { break }
            seen = now
        }
        // Here, not in the task: the loop must not advance its clock before the task resumes. If `begin` is only about
        // to count the wait, the count allows for that.
        if seen == WaitPhase.waiting { home?.endWaitingForLoop() }
        return seen
    }

    private func resume() {
        // A thread that is ending lacks the state that Swift's pool needs to take over a task.
        if EventLoop.isEndingOnThisThread { resumeElsewhere() } else { resumeHere() }
    }

    private func resumeElsewhere() {
        do { try Self.thread.dispatch { self.resumeHere() } } catch { resumeHere() }
    }

    // A separate thread, because code that waits for this task may block all threads for async bodies.
    private static let thread = try! ThreadPool(name: "resuming", threads: 1, queueLimit: .max)

    // Not on Swift's pool, where Swift would continue the task inside the settling call.
    private func resumeHere() { job?.runSynchronously(on: asUnownedSerialExecutor()) }
}

extension AwaitingTask: SerialExecutor {
    @usableFromInline
    func enqueue(_ job: consuming ExecutorJob) {
        // Retained, because the task may end and release this object before `begin` returns.
        retain()
        begin(UnownedJob(job))
        release()
    }

    @usableFromInline
    func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }
}

/// The actor where a task waits. Its executor is the waiter.
///
/// A Swift continuation would resume through Swift's pool, even for a task of an actor on a loop. A pool thread would
/// wake only to pass the task to the loop that has just settled the promise, which took four times as long.
private actor SuspensionActor {
    private let waiter: AwaitingTask
    /// Exists because Swift hops only to an actor with state.
    private var hasEntered = false
    nonisolated var unownedExecutor: UnownedSerialExecutor { waiter.asUnownedSerialExecutor() }

    init(_ waiter: AwaitingTask) { self.waiter = waiter }

    func enter() { hasEntered = true }
}

extension PromiseCore {
    /// Throws if only this thread's loop can settle the promise and nothing drives that loop, because an async function
    /// made the promise on a thread of Swift's pool.
    fileprivate func refuseToWaitForUndrivenLoop(_ type: Any.Type, _ isolation: (any Actor)?) throws {
        guard loop == .ofThisThread, !role.contains(.externallySettled), settled == nil,
            EventLoop.isLeftUndriven(by: isolation)
        else { return }
        let promise = provenance(type: "Promise<\(type)>", callSite: root.callSite ?? notedCallSite)
        cancelUnlessWanted()
        throw PromiseError.badInput(
            "await of \(promise) on a thread whose event loop nothing drives: an async function leaves its caller's thread, "
                + "unless it is nonisolated(nonsending) or belongs to an actor that lives on the loop")
    }
}
