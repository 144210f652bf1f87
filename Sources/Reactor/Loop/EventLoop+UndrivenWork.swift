import CLinux
import Synchronization

// See `UndrivenWork`.

extension EventLoop {
    package static var isNotingHandlers: Bool { clinux_is_noting_handlers() }

    /// Returns true if nothing will drive the calling thread's loop, because the thread belongs to Swift's pool or a
    /// `ThreadPool` and will run other code. Called for a task that is about to wait for that loop.
    ///
    /// A task with another executor may be on a thread that drives its loop later.
    /// - Parameter isolation: the actor on which the task runs.
    package static func isLeftUndriven(by isolation: (any Actor)?) -> Bool {
        guard isNotingHandlers, let undrivenWork = withExisting({ $0.undrivenWork }) ?? nil, !undrivenWork.isMain else {
            return false
        }
        if undrivenWork.isOfPool { return true }
        guard withUnsafeCurrentTask(body: { $0 != nil && $0?.unownedTaskExecutor == nil }) else { return false }
        return isolation.map(hasDefaultExecutor) ?? true
    }

    private static func hasDefaultExecutor(_ actor: any Actor) -> Bool {
        // Sound: `UnownedSerialExecutor` is a frozen structure with two words, an object and its conformance to
        // `SerialExecutor`. An actor without a custom executor lacks the conformance.
        unsafeBitCast(actor.unownedExecutor, to: (UInt, UInt).self).1 == 0
    }

    /// Called when a turn begins, because handlers attached from now on will run. Call
    /// `ThreadLoop.noteHandlersIfNeeded` next.
    @inline(never)
    func beginDriving() {
        if depth == 1, let undrivenWork, undrivenWork.loopIsDriven() { endObservation() }
        clinux_set_noting_handlers(false)
    }

    func endObservation() {
        guard let observer = undrivenWork.take() else { return }
        ThreadLoop.noteHandlersIfNeeded()
        observer.end()
    }

    /// The pool of the loop's thread; `nil` for a `withLoop` inside a job.
    package var poolOfThread: ThreadPoolWorkers? { undrivenWork?.isOfPool == true ? PoolThread.current?.pool : nil }

    /// The known call sites of work that waits here and cannot run.
    package var unrunCallSites: [CallSite] { undrivenWork?.callSites ?? [] }

    /// Notes `job`, the layer above's work for this loop. Called only while this thread notes handlers, or operations
    /// are traced.
    /// - Returns: true if `job` must call `leaveUndrivenWork` before its `deinit`.
    package func note(_ job: Job, _ callSite: CallSite) -> Bool {
        guard let undrivenWork, !isBeingDriven else { return false }
        undrivenWork.note(job, callSite)
        return true
    }

    /// Reports once that `run()` on the main thread's loop returns although handlers wait for promises that nothing
    /// here can settle, but only other threads, callbacks or each other. Other loops report their handlers when they
    /// end.
    @inline(never)
    func reportLeftHandlers() {
        guard !isBeingDriven, ThreadLoop.isMain(self), crossThreadWaiters.count > 0 || !canWakeItself,
            !ThreadLoop.hasReportedLeftHandlers.exchange(true, ordering: .relaxed)
        else { return }
        let waiters = (0..<crossThreadWaiters.count).map { crossThreadWaiters[$0 + 1] }
        let callSites = waiters.lazy.compactMap { $0._withUnsafeGuaranteedRef { $0.awaitedCallSite } }
        LoopEvent.send(.leftHandlers(waiters.isEmpty ? waitingHandlers : waiters.count, callSites.first))
    }

    /// Handlers and jobs that would be undelivered if the loop ended now.
    package var undeliveredCount: Int {
        takeMail()
        return waitingHandlers + jobs.countOfReported
    }
}
