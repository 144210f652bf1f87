import CLinux
import ReactorLibc

extension EventLoop {
    /// For a loop that is about to end its `run()`: runs jobs of the main actor that arrived since the loop last
    /// waited.
    /// - Returns: whether there were any.
    func runLateMainActorJobs() -> Bool {
        guard mainActor.runLateJobs(kernel) else { return false }
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
    /// The process ends when `main` returns, even if the loop still has work. `stop()` ends only nested runs, not this
    /// one.
    ///
    /// This sets a hook of Swift's runtime (`swift_task_asyncMainDrainQueue_hook`), which versions 5.5 to 6.3 have.
    ///
    /// - Throws: `DispatchError.badInput` on any thread but the main thread, and if the runtime has no such hook.
    public static func driveAsyncMain() throws(DispatchError) {
        guard clinux_gettid() == getpid() else {
            throw .badInput("EventLoop.driveAsyncMain(): not the main thread; call it in main, before the first await")
        }
        let isSet = clinux_set_while_async_main_waits {
            // This runs on the main thread, so this is the main thread's loop.
            let loop = EventLoop.ofCurrentThread
            while loop.driveUntilStopped() {}
        }
        if !isSet { throw .badInput("EventLoop.driveAsyncMain(): this Swift runtime has no hook for it") }
    }
}
