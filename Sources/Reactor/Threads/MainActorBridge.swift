import CLinux
import Glibc
import Synchronization

// The main actor and the main thread's loop share a thread. Swift leaves the jobs of `@MainActor` code in libdispatch's
// main queue, which on Linux nobody looks into while the main thread waits in epoll: they would never run. So a loop that
// is driven on the main thread watches that queue too, and runs its jobs between its own.

extension EventLoop {
    /// Whether this loop runs the main actor's jobs: it is on the main thread. In a forked child these are the parent's, and
    /// so is the eventfd.
    var servesMainActor: Bool {
        if let known = isOnMainThread { return known && ForkDetector.generation == 0 }
        let isOnMainThread = clinux_gettid() == getpid()
        self.isOnMainThread = isOnMainThread
        return isOnMainThread && ForkDetector.generation == 0
    }

    /// Watches the queue, from the first wait on. A program without libdispatch has none.
    func watchMainActorQueue() throws(SystemError) {
        guard servesMainActor, let fd = try mainActorQueue() else { return }
        // Edge-triggered, so nobody need read it; and whoever else does, Foundation's run loop, takes nothing from us.
        try poller.add(.mainActor, fd, kernel)
        watchesMainActorQueue = true
    }

    /// libdispatch's eventfd; `nil` in a program without libdispatch. libdispatch makes it when it is asked first, or when
    /// the first job comes, and ends the process with SIGILL if no descriptor is left. So the first time it is asked only
    /// after one could be had; another thread that takes the last one within those microseconds is the risk that remains.
    /// - Throws: `SystemError` of `eventfd`, such as `EMFILE`.
    func mainActorQueue() throws(SystemError) -> CInt? {
        guard clinux_has_main_queue() else { return nil }
        if !Self.hasMainActorQueue.load(ordering: .relaxed) {
            kernel.close(CInt(try kernel.eventCreate().orThrow(.eventCreate, "for the main actor's jobs")))
            Self.hasMainActorQueue.store(true, ordering: .relaxed)
        }
        return clinux_main_queue()
    }

    /// Whether libdispatch is known to have made it.
    private static let hasMainActorQueue = Atomic(false)

    /// Runs jobs of the main actor: about those that have come, so that a chain of them cannot hold the loop. If more are left, the
    /// eventfd is written anew.
    func runMainActorJobs() {
        if servesMainActor { runMainQueue() }
    }

    private func runMainQueue() {
        let outer = isRunningMainActorJobs
        isRunningMainActorJobs = true
        clinux_run_main_queue()
        isRunningMainActorJobs = outer
    }

    /// A loop that is about to end its `run()`: runs jobs of the main actor that it has not seen, since it has not waited since
    /// they came. Answers whether there were any.
    func runLateMainActorJobs() -> Bool {
        guard servesMainActor else { return false }
        var count: UInt64 = 0
        // Without a descriptor for it there is none, and no job has come.
        guard let queue = try? mainActorQueue(), read(queue, &count, 8) == 8 else { return false }
        runMainQueue()
        return true
    }

    /// For a program whose `main` is async: makes the main thread drive its loop while `main` waits. First thing in `main`,
    /// before the first `await`:
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
    /// Without it Swift ends the main thread at the first `await`, `@MainActor` code goes on on other threads, and nobody
    /// drives the main thread's loop. With it `@MainActor` code stays on the main thread, next to the promises there. The
    /// process ends when `main` returns, whatever the loop still waits for; `stop()` ends what runs nested, and not that.
    ///
    /// It sets a hook of Swift's runtime (`swift_task_asyncMainDrainQueue_hook`), which was there from 5.5 to 6.3.
    ///
    /// - Throws: `DispatchError.badInput` if this is not the main thread, or the runtime has no such hook.
    public static func driveAsyncMain() throws(DispatchError) {
        guard clinux_gettid() == getpid() else {
            throw .badInput("EventLoop.driveAsyncMain(): not the main thread; call it in main, before the first await")
        }
        let isSet = clinux_set_while_async_main_waits {
            // On the main thread, whose loop is this one.
            let loop = EventLoop.ofCurrentThread
            while loop.driveUntilStopped() {}
        }
        if !isSet { throw .badInput("EventLoop.driveAsyncMain(): this Swift runtime has no hook for it") }
    }
}
