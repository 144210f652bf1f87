import CLinux
import Glibc
import Synchronization

// Detects handlers that never run because no code drives the loop of their thread: they were attached in a synchronous
// function that an async one has called, on a thread of Swift's pool; on a thread of Dispatch's; or on a thread that
// ends. Whether a thread drives its loop becomes clear only afterwards. Work that begins there is therefore noted, and
// forgotten when the loop is driven. Work that has ended before a report is not part of the report.
//
// On the thread concerned this costs a call in each operator outside a turn, and a slower turn; it costs other threads
// nothing. A thread of the program's own stops paying when it drives its loop for the first time: from then on it is
// assumed to continue driving it. A thread of Swift's pool or of a `ThreadPool` continues to pay: it runs code of
// different origins, one after the other.

extension EventLoop {
    /// Prepares for the case that this thread, which has just got its loop, never drives it. Once the main thread has
    /// driven its loop, it is assumed to continue.
    func expectToBeDriven(isMain: Bool) {
        let undrivenDetector = UndrivenLoopDetector(isMain: isMain, isOfPool: PoolThread.isCurrent)
        self.undrivenDetector = undrivenDetector
        Self.noteHandlersIfNeeded()
        // The jobs of a pool are checked when each has ended.
        if undrivenDetector.isOfPool { return }
        Self.undrivenThreads.withLock { $0.detectors.append(undrivenDetector) }
    }

    /// Makes the operators of this thread note their call sites, if its current loop may never be driven and is not
    /// being driven now.
    static func noteHandlersIfNeeded() {
        guard let address = clinux_get_current_loop() else { return clinux_set_noting_handlers(false) }
        clinux_set_noting_handlers(
            Unmanaged<EventLoop>.fromOpaque(address)._withUnsafeGuaranteedRef {
                $0.undrivenDetector != nil && !$0.isBeingDriven
            })
    }

    /// Whether operators of this thread note their call sites.
    package static var isNotingHandlers: Bool { clinux_is_noting_handlers() }

    /// Called when the outermost turn begins. Returns whether operators have noted their call sites, and are to do so
    /// again afterwards.
    func beginDriving() -> Bool {
        forgetUndriven()
        // False if this loop is turned inside a `withLoop`, whose operators note nothing.
        let wasNoting = clinux_is_noting_handlers()
        if wasNoting { clinux_set_noting_handlers(false) }
        return wasNoting
    }

    /// Called when the outermost turn ends, if operators had noted their call sites.
    func stopDriving() { clinux_set_noting_handlers(undrivenDetector != nil) }

    /// Called when the loop is driven: the attached handlers will run. A thread of the program's own notes nothing any
    /// more.
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
        Self.undrivenThreads.withLock { $0.remove(undrivenDetector) }
    }

    /// The detectors of all threads that are alive, for the end of the process.
    private static let undrivenThreads = LockedValue(UndrivenThreads())

    /// In no order. Few threads have a loop that they have not driven yet.
    // A type of its own, and an array: see `UndrivenLoopDetector.Sites`.
    private struct UndrivenThreads {
        var detectors: [UndrivenLoopDetector] = []

        mutating func remove(_ detector: UndrivenLoopDetector) {
            guard let index = detectors.firstIndex(where: { $0 === detector }) else { return }
            detectors.swapAt(index, detectors.count - 1)
            detectors.removeLast()
        }
    }

    /// Whether the thread drives this loop, or is not known as one that may never drive it.
    var isKnownToBeDriven: Bool { isBeingDriven || undrivenDetector?.isMain ?? true }

    /// The call sites of work that still waits here and cannot run, as far as they are known.
    package var undrivenPlaces: [CallSite] { undrivenDetector?.places ?? [] }

    /// Notes that the layer above has begun something here that this loop must deliver. Called only while this thread
    /// notes call sites, or while operations are traced.
    package func note(_ origin: CallSite) {
        if let undrivenDetector, !isBeingDriven { undrivenDetector.note(origin) }
    }

    /// As `note(_:)`, for the work that `job` represents: it is reported only if it still waits at the time of the
    /// report.
    /// - Returns: whether `job` must call `leaveUndrivenWork` before it is deinitialized.
    package func note(_ job: Job, _ origin: CallSite) -> Bool {
        guard let undrivenDetector, !isBeingDriven else { return false }
        undrivenDetector.note(job, origin)
        return true
    }

    /// Called when the loop has ended and has left work at these call sites.
    func endUndrivenDetection(_ places: [CallSite]) {
        for place in places { UndrivenLoopDetector.report(place) }
        undrivenDetector?.forgetPlaces()
        stopWatching()
    }

    /// Makes the end of the process report the work of all threads whose loop was never driven.
    static func watchEndOfProcess() { _ = endOfProcess }

    private static let endOfProcess: Void = {
        generationOfProcess.store(ForkDetector.generation, ordering: .relaxed)
        atexit { EventLoop.reportUndriven() }
    }()

    private static let generationOfProcess = Atomic<CInt>(0)

    /// Called on the thread that ends the process.
    static func reportUndriven() {
        // A forked child has no other threads, and one of them may have held a lock.
        guard ForkDetector.generation == generationOfProcess.load(ordering: .relaxed) else { return }
        let threads = undrivenThreads.withLock { $0.detectors.sorted { $0.number < $1.number } }
        for thread in threads { thread.reportAll() }
        // An async `main` leaves the main thread to other code, and another thread may call exit.
        guard clinux_gettid() == getpid(), threads.contains(where: \.isMain) else { return }
        let left = mainLoopOfProcess.undeliveredCount
        if left > 0 { LoopEvent.send(.undelivered(left)) }
    }

    /// The number of handlers and jobs that would be undelivered if the loop ended now.
    package var undeliveredCount: Int {
        takeMail()
        return waitingHandlers + jobs.countOfReported
    }
}
