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
    /// - Throws: what `body` throws; `SystemError` as `run()`, before `body` has begun; `DispatchError.badInput` in a job of the main
    ///   actor, which `body` would wait for, and never get its turn: await the function there; and in a method of another actor
    ///   if `body` uses that actor's state, unless the actor lives on this loop: the method holds the actor, for which `body`
    ///   would wait. (An actor that `body` only awaits is not seen: a method of it must not wait here.)
    @available(*, noasync, message: "call the async function itself")
    @discardableResult
    public func run<Value>(_ body: @escaping @isolated(any) () async throws -> Value) throws -> Value {
        try checkWhetherItCanTurn()
        assertOwner()
        if let actor = body.isolation, !mayRun(for: actor) {
            throw DispatchError.badInput(
                "EventLoop.run { … } in a method of the actor \(type(of: actor)), with a body of that actor, which would wait "
                    + "for this method to return; make the method async, or have the actor live on the loop")
        }
        if isRunningMainActorJobs {
            throw DispatchError.badInput(
                "EventLoop.run { … } in a job of the main actor, which the async function would wait for; await it instead"
            )
        }
        // What can fail fails now: a body that has begun must not outlive this call.
        if !hasWaker { try openWaker() }
        defer { stopRequested = false }
        let home = remote
        let outcome = Outcome<Value>()
        // Sound since the task's executor is this thread's: neither `body` nor what it captured is used on another one.
        nonisolated(unsafe) let body: () async throws -> Value = body
        let task = whileDriven {
            Task.immediate(executorPreference: home) {
                do { outcome.result = .success(try await body()) } catch { outcome.result = .failure(error) }
            }
        }
        while true {
            if let result = outcome.result { return try result.get() }
            if stopRequested || isStopping {
                stopRequested = false
                task.cancel()
            }
            do { try turn(.wait) } catch {
                fatalError("EventLoop.run { … } cannot go on, nor leave what it runs behind: \(error)")
            }
        }
    }

    /// Whether a body that is isolated to `actor` gets its turn while this thread drives the loop. A body is not `Sendable`, so
    /// the caller holds the actor that the body is isolated to.
    private func mayRun(for actor: any Actor) -> Bool {
        // Its jobs run between those of the main thread's loop; see `isRunningMainActorJobs`.
        if actor is MainActor { return true }
        guard let executor = actor.unownedExecutor.asSerialExecutor() as? LoopActorExecutor else { return false }
        return executor.isExecutor(of: self)
    }

    // @unchecked: written by the task and read by who waits for it, both on the loop's thread.
    private final class Outcome<Value>: @unchecked Sendable {
        var result: Result<Value, any Error>?
    }
}
