import CLinux
import ReactorLibc

extension EventLoop {
    /// Runs the main actor's jobs that arrived after the loop's last wait. Called before `run()` returns.
    /// - Returns: true if there were any.
    func runLateMainActorJobs() -> Bool {
        guard mainActor.runLateJobs(kernel) else { return false }
        // The next turn does not follow immediately.
        meter.endOfTurn = LoopMeter.unknown
        return true
    }

    /// Makes the main thread drive its loop while an async `main` waits. Call it in `main` before the first `await`:
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
    /// Without this call, the main thread ends at the first `await`, `@MainActor` code moves to other threads, and
    /// nothing drives the main thread's loop. With it, `@MainActor` code stays on the main thread, next to the
    /// handlers.
    ///
    /// The process ends when `main` returns, even if the loop has work. `stop()` ends only nested runs.
    ///
    /// Sets `swift_task_asyncMainDrainQueue_hook` in Swift's runtime, which versions 5.5 to 6.3 have.
    ///
    /// - Throws: `DispatchError.badInput` on another thread than the main thread, or if the runtime lacks the hook.
    public static func driveAsyncMain() throws(DispatchError) {
        guard clinux_gettid() == getpid() else {
            throw .badInput("EventLoop.driveAsyncMain(): not the main thread; call it in main, before the first await")
        }
        let isSet = clinux_set_while_async_main_waits {
            // The main thread's loop.
            let loop = EventLoop.ofCurrentThread
            while loop.driveUntilStopped() {}
        }
        if !isSet { throw .badInput("EventLoop.driveAsyncMain(): this Swift runtime has no hook for it") }
    }
}
