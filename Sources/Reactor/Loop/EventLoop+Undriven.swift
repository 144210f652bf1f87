import CLinux
import Glibc
import Synchronization

// Handlers that never run, since the loop of their thread is never driven: attached in a synchronous function that an async one
// has called, on a thread of Swift's pool; on a thread of Dispatch's; or on a thread that ends. Whether a thread drives its loop
// shows only afterwards. So what is begun there is noted, and forgotten when the loop is driven; and what is over by the time of
// a report is left out of it.
//
// That costs the thread concerned a call in each operator outside a turn, and a slower turn; it costs other threads nothing.
// A thread of the program's own stops paying when it drives its loop for the first time: from then on it is taken to know what
// it does. A thread of Swift's pool or of a `ThreadPool` goes on: it runs code of different origins, one after the other.

extension EventLoop {
    /// This thread, which has just got its loop, may never drive it. Once the main thread has, it is taken to know what it does.
    func expectToBeDriven(isMain: Bool) {
        let undrivenDetector = UndrivenLoopDetector(isMain: isMain, isOfPool: PoolThread.isCurrent)
        self.undrivenDetector = undrivenDetector
        Self.noteHandlersIfNeeded()
        // The jobs of a pool are looked after when each has ended.
        if undrivenDetector.isOfPool { return }
        Self.undrivenThreads.withLock { $0[undrivenDetector.number] = undrivenDetector }
    }

    /// Lets the operators of this thread note where they attach, if its current loop may never be driven, and is not being
    /// driven now.
    static func noteHandlersIfNeeded() {
        guard let address = clinux_get_current_loop() else { return clinux_set_noting_handlers(false) }
        clinux_set_noting_handlers(
            Unmanaged<EventLoop>.fromOpaque(address)._withUnsafeGuaranteedRef {
                $0.undrivenDetector != nil && !$0.isBeingDriven
            })
    }

    /// Whether operators of this thread note where they attach.
    package static var isNotingHandlers: Bool { clinux_is_noting_handlers() }

    /// The outermost turn begins. Returns whether operators have noted where they attach, and are to do so again afterwards.
    func beginDriving() -> Bool {
        forgetUndriven()
        // Not those of a `withLoop` inside which this loop is turned.
        let wasNoting = clinux_is_noting_handlers()
        if wasNoting { clinux_set_noting_handlers(false) }
        return wasNoting
    }

    /// That turn ends. Only if operators had noted where they attach.
    func stopDriving() { clinux_set_noting_handlers(undrivenDetector != nil) }

    /// The loop is driven: what has been attached will run. On a thread of the program's own nothing is noted any more.
    func forgetUndriven() {
        guard let undrivenDetector else { return }
        undrivenDetector.forgetPlaces()
        guard undrivenDetector.isMain || !undrivenDetector.isOfPool && withUnsafeCurrentTask(body: { $0 == nil }) else {
            return
        }
        stopWatching()
    }

    private func stopWatching() {
        guard let undrivenDetector = undrivenDetector.take() else { return }
        Self.noteHandlersIfNeeded()
        Self.undrivenThreads.withLock { _ = $0.removeValue(forKey: undrivenDetector.number) }
    }

    /// Those of all threads that are there, for the end of the process.
    private static let undrivenThreads = LockedValue<[Int: UndrivenLoopDetector]>([:])

    /// Whether the thread drives this loop, or is not known to be one that may not.
    var isKnownToBeDriven: Bool { isBeingDriven || undrivenDetector?.isMain ?? true }

    /// Where what still waits here in vain was begun, as far as is known.
    package var undrivenPlaces: [CallSite] { undrivenDetector?.places ?? [] }

    /// The layer above has begun something here that this loop is to deliver. Called only while this thread notes that, or
    /// operations are traced.
    package func note(_ origin: CallSite) {
        if let undrivenDetector, !isBeingDriven { undrivenDetector.note(origin) }
    }

    /// As `note(_:)`, for what a job stands for: it is reported only if it is still waiting then.
    /// - Returns: whether `job` must call `leaveUndrivenWork` before it is taken apart.
    package func note(_ job: Job, _ origin: CallSite) -> Bool {
        guard let undrivenDetector, !isBeingDriven else { return false }
        undrivenDetector.note(job, origin)
        return true
    }

    /// The loop has ended, and left these behind.
    func endUndrivenDetection(_ places: [CallSite]) {
        for place in places { UndrivenLoopDetector.report(place) }
        undrivenDetector?.forgetPlaces()
        stopWatching()
    }

    /// Looks at the threads that are there when the process ends: what has been begun on them and never driven will not happen.
    static func watchEndOfProcess() { _ = endOfProcess }

    private static let endOfProcess: Void = {
        generationOfProcess.store(ForkDetector.generation, ordering: .relaxed)
        atexit { EventLoop.reportUndriven() }
    }()

    private static let generationOfProcess = Atomic<CInt>(0)

    /// The process ends, on this thread.
    static func reportUndriven() {
        // A forked child has no other threads, and locks that one of them may have held.
        guard ForkDetector.generation == generationOfProcess.load(ordering: .relaxed) else { return }
        let threads = undrivenThreads.withLock { $0.values.sorted { $0.number < $1.number } }
        for thread in threads { thread.reportAll() }
        // An async `main` leaves the main thread to others, one of which calls exit.
        guard clinux_gettid() == getpid(), threads.contains(where: \.isMain) else { return }
        let left = mainLoopOfProcess.undeliveredCount
        if left > 0 { LoopEvent.send(.undelivered(left)) }
    }

    /// How many handlers and jobs would be left undelivered if the loop ended now.
    package var undeliveredCount: Int {
        takeMail()
        return waitingHandlers + queues.ready.countOfReported
    }
}
