import CLinux

// The observation of a thread that may never drive its loop; see `UnrunWork`.

extension EventLoop {
    /// Whether operators of this thread note their work.
    package static var isNotingHandlers: Bool { clinux_is_noting_handlers() }

    /// Called when the outermost turn begins.
    /// - Returns: whether operators have noted their work, and are to do so again afterwards.
    @inline(never)
    func beginDriving() -> Bool {
        if let unrunWork, unrunWork.loopIsDriven() { endObservation() }
        // False if this loop is turned inside a `withLoop`, whose operators note nothing.
        let wasNoting = clinux_is_noting_handlers()
        if wasNoting { clinux_set_noting_handlers(false) }
        return wasNoting
    }

    /// Called when the outermost turn ends, if operators had noted their work.
    @inline(never)
    func stopDriving() { clinux_set_noting_handlers(unrunWork != nil) }

    /// The thread is not observed any more.
    func endObservation() {
        guard let observer = unrunWork.take() else { return }
        ThreadLoop.noteHandlersIfNeeded()
        observer.end()
    }

    /// Whether the thread drives this loop, or is not known as one that may never drive it.
    var isKnownToBeDriven: Bool { isBeingDriven || unrunWork?.isMain ?? true }

    /// The call sites of work that still waits here and cannot run, as far as they are known.
    package var unrunCallSites: [CallSite] { unrunWork?.callSites ?? [] }

    /// Notes that the layer above has begun something here that this loop must deliver, and that `job` represents. Called
    /// only while this thread notes handlers, or while operations are traced.
    /// - Returns: whether `job` must call `leaveUnrunWork` before it is deinitialized.
    package func note(_ job: Job, _ callSite: CallSite) -> Bool {
        guard let unrunWork, !isBeingDriven else { return false }
        unrunWork.note(job, callSite)
        return true
    }

    /// The number of handlers and jobs that would be undelivered if the loop ended now.
    package var undeliveredCount: Int {
        takeMail()
        return waitingHandlers + jobs.countOfReported
    }
}
