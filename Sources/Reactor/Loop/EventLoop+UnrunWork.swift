import CLinux
import Synchronization

// The observation of a thread that may never drive its loop; see `UnrunWork`.

extension EventLoop {
    /// Whether operators of this thread note their work.
    package static var isNotingHandlers: Bool { clinux_is_noting_handlers() }

    /// For a task that is about to wait for what only the current loop of the calling thread can do: whether nothing
    /// will drive that loop, since the thread is one of Swift's pool or of a `ThreadPool`, and continues with other code.
    ///
    /// A task of another executor may be on a thread that drives its loop later.
    /// - Parameter isolation: the actor that the task runs for.
    package static func isLeftUndriven(by isolation: (any Actor)?) -> Bool {
        guard isNotingHandlers, let unrunWork = withExisting({ $0.unrunWork }) ?? nil, !unrunWork.isMain else {
            return false
        }
        if unrunWork.isOfPool { return true }
        guard withUnsafeCurrentTask(body: { $0 != nil && $0?.unownedTaskExecutor == nil }) else { return false }
        return isolation.map(hasDefaultExecutor) ?? true
    }

    private static func hasDefaultExecutor(_ actor: any Actor) -> Bool {
        // Sound because `UnownedSerialExecutor` is a frozen structure of two words: an object, and its conformance to
        // `SerialExecutor`, of which an actor without a custom executor has none.
        unsafeBitCast(actor.unownedExecutor, to: (UInt, UInt).self).1 == 0
    }

    /// Called when a turn begins: handlers that are attached from here on will run. Afterwards
    /// `ThreadLoop.noteHandlersIfNeeded` is called.
    @inline(never)
    func beginDriving() {
        if depth == 1, let unrunWork, unrunWork.loopIsDriven() { endObservation() }
        clinux_set_noting_handlers(false)
    }

    /// The thread is not observed any more.
    func endObservation() {
        guard let observer = unrunWork.take() else { return }
        ThreadLoop.noteHandlersIfNeeded()
        observer.end()
    }

    /// The pool that the loop's thread belongs to; `nil` for a loop that a job has made with `withLoop`.
    package var poolOfThread: ThreadPoolWorkers? { unrunWork?.isOfPool == true ? PoolThread.current?.pool : nil }

    /// The call sites of work that still waits here and cannot run, as far as they are known.
    package var unrunCallSites: [CallSite] { unrunWork?.callSites ?? [] }

    /// Notes work of the layer above, represented by `job`, that this loop must deliver. Called only while this thread
    /// notes handlers, or while operations are traced.
    /// - Returns: whether `job` must call `leaveUnrunWork` before it is deinitialized.
    package func note(_ job: Job, _ callSite: CallSite) -> Bool {
        guard let unrunWork, !isBeingDriven else { return false }
        unrunWork.note(job, callSite)
        return true
    }

    /// `run()` returns although handlers wait for promises that nothing on this loop can settle: those of other threads
    /// and callbacks, and those that wait for one another, such as the turns of a limiter for whose operations in
    /// progress. Reported once, for the main thread's loop: every other loop ends, and its end reports them.
    @inline(never)
    func reportLeftHandlers() {
        guard !isBeingDriven, ThreadLoop.isMain(self), outsideWaiters.count > 0 || !canWakeItself,
            !ThreadLoop.hasReportedLeftHandlers.exchange(true, ordering: .relaxed)
        else { return }
        let waiters = (0..<outsideWaiters.count).map { outsideWaiters[$0 + 1] }
        let callSites = waiters.lazy.compactMap { $0._withUnsafeGuaranteedRef { $0.awaitedCallSite } }
        LoopEvent.send(.leftHandlers(waiters.isEmpty ? waitingHandlers : waiters.count, callSites.first))
    }

    /// The number of handlers and jobs that would be undelivered if the loop ended now.
    package var undeliveredCount: Int {
        takeMail()
        return waitingHandlers + jobs.countOfReported
    }
}
