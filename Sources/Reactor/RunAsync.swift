import CLinux

extension EventLoop {
    /// Runs an async function on this loop and drives it meanwhile: how a synchronous `main`, or a test, uses `await`.
    ///
    /// ```swift
    /// let answer = try EventLoop.current.run {
    ///     let connection = try await firstly { connect(to: address) }.value
    ///     …
    /// }
    /// ```
    ///
    /// `body` begins at once and goes on as jobs of the loop, between its handlers. So do the async functions that it calls
    /// and that belong to no actor, `async let`s and task groups among them, but not `Task { … }`. What it uses of this thread
    /// it need not be `Sendable` for; the compiler refuses to hand it on to other actors. (`withTaskExecutorPreference` with
    /// another executor takes the body away from this thread, unseen by the compiler: use it for `Sendable` values only.)
    ///
    /// `stop()` cancels the task; this still returns when `body` does. A virtual clock goes on while `body` waits for other
    /// threads, but for those that a promise of this loop waits for.
    ///
    /// - Throws: what `body` throws; `SystemError` as `run()`.
    @available(*, noasync, message: "call the async function itself")
    @discardableResult
    public func run<Value>(_ body: @escaping () async throws -> Value) throws -> Value {
        try checkWhetherItCanTurn()
        assertOwner()
        let home = remote
        let outcome = Outcome<Value>()
        // Sound since the task's executor is this thread's: neither `body` nor what it captured is used on another one.
        nonisolated(unsafe) let body = body
        let outer = clinux_get_current_loop()
        clinux_set_current_loop(Unmanaged.passUnretained(self).toOpaque())
        let task = Task.immediate(executorPreference: home) {
            do { outcome.result = .success(try await body()) } catch { outcome.result = .failure(error) }
        }
        clinux_set_current_loop(outer)
        while true {
            if let result = outcome.result { return try result.get() }
            if stopRequested || isStopping {
                stopRequested = false
                task.cancel()
            }
            try turn(.wait)
        }
    }

    // @unchecked: written by the task and read by who waits for it, both on the loop's thread.
    private final class Outcome<Value>: @unchecked Sendable {
        var result: Result<Value, any Error>?
    }
}
