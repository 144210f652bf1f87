import CLinux
import Glibc
import Synchronization

// The main actor and the main thread's loop share a thread. Swift puts the jobs of `@MainActor` code into libdispatch's
// main queue. On Linux, nothing looks into that queue while the main thread waits in epoll, so the jobs would never
// run. A loop that is driven on the main thread therefore watches that queue too, and runs its jobs between its own.

extension EventLoop {
    /// Whether this loop runs the main actor's jobs, because it is on the main thread. In a forked child the jobs
    /// belong to the parent, and so does the eventfd.
    var servesMainActor: Bool {
        if let known = mainActor.isOnMainThread { return known && ForkDetector.generation == 0 }
        let isOnMainThread = clinux_gettid() == getpid()
        mainActor.isOnMainThread = isOnMainThread
        return isOnMainThread && ForkDetector.generation == 0
    }

    /// Watches the main queue, from the first wait on. A program without libdispatch has no such queue.
    func watchMainActorQueue() throws(SystemError) {
        guard servesMainActor, let fd = try mainActorQueue() else { return }
        // Edge-triggered, so the eventfd need not be read; and another reader, such as Foundation's run loop, takes
        // nothing away from this loop.
        try poller.add(.mainActor, fd, kernel)
        mainActor.watchesQueue = true
    }

    /// Returns libdispatch's eventfd, or `nil` in a program without libdispatch.
    ///
    /// libdispatch opens the eventfd when it is asked for it first, or when the first job is queued, and ends the
    /// process with SIGILL if no descriptor is left. It is therefore asked only after a descriptor could be opened
    /// here. One risk remains: another thread that takes the last descriptor within those microseconds.
    /// - Throws: `SystemError` of `eventfd`, such as `EMFILE`.
    func mainActorQueue() throws(SystemError) -> CInt? {
        guard clinux_has_main_queue() else { return nil }
        if !Self.hasMainActorQueue.load(ordering: .relaxed) {
            kernel.close(CInt(try kernel.eventCreate().orThrow(.eventCreate, "for the main actor's jobs")))
            Self.hasMainActorQueue.store(true, ordering: .relaxed)
        }
        return clinux_main_queue()
    }

    /// Whether libdispatch is known to have opened its eventfd.
    private static let hasMainActorQueue = Atomic(false)

    /// Runs about as many jobs of the main actor as have arrived, so that a chain of them cannot occupy the loop. If
    /// more are left, the eventfd is written again.
    func runMainActorJobs() {
        if servesMainActor { runMainQueue() }
    }

    private func runMainQueue() {
        let outer = mainActor.isRunningJobs
        mainActor.isRunningJobs = true
        clinux_run_main_queue()
        mainActor.isRunningJobs = outer
    }

    /// For a loop that is about to end its `run()`: runs jobs of the main actor that have arrived since the loop waited
    /// last.
    /// - Returns: whether there were any.
    func runLateMainActorJobs() -> Bool {
        guard servesMainActor else { return false }
        var count: UInt64 = 0
        // If the eventfd cannot be opened, libdispatch has none, so no job has arrived.
        guard let queue = try? mainActorQueue(), read(queue, &count, 8) == 8 else { return false }
        runMainQueue()
        // The next turn does not follow the last one at once.
        meter.endOfTurn = LoopMeter.unknown
        return true
    }

    /// Makes the main thread drive its loop while an async `main` waits. Call it in `main`, before the first `await`:
    ///
    /// ```swift
    /// @main struct Server {
    ///     static func main() async throws {
    ///         try EventLoop.driveAsyncMain()
    ///         …
    ///     }
    /// }
    /// ```
    ///
    /// Without this call, Swift ends the main thread at the first `await`, `@MainActor` code continues on other
    /// threads, and no thread drives the main thread's loop. With it, `@MainActor` code stays on the main thread, next
    /// to the handlers there.
    ///
    /// The process ends when `main` returns, even if the loop still waits for something. `stop()` ends only nested
    /// runs, not this one.
    ///
    /// This sets a hook of Swift's runtime (`swift_task_asyncMainDrainQueue_hook`), which versions 5.5 to 6.3 have.
    ///
    /// - Throws: `DispatchError.badInput` on any thread but the main thread, and if the runtime has no such hook.
    public static func driveAsyncMain() throws(DispatchError) {
        guard clinux_gettid() == getpid() else {
            throw .badInput("EventLoop.driveAsyncMain(): not the main thread; call it in main, before the first await")
        }
        let isSet = clinux_set_while_async_main_waits {
            // This runs on the main thread, so this is that thread's loop.
            let loop = EventLoop.ofCurrentThread
            while loop.driveUntilStopped() {}
        }
        if !isSet { throw .badInput("EventLoop.driveAsyncMain(): this Swift runtime has no hook for it") }
    }
}
