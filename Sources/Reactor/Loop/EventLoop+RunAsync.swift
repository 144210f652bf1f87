extension EventLoop {
    /// Runs an async function on this loop and drives the loop meanwhile. A synchronous `main`, or a test, uses it to
    /// call async code.
    ///
    /// ```swift
    /// let answer = try EventLoop.current.run {
    ///     let connection = try await firstly { connect(to: address) }.value
    ///     …
    /// }
    /// ```
    ///
    /// `body` begins at once and continues as jobs of the loop, between the loop's handlers. So do the async functions
    /// that it calls and that belong to no actor, including `async let`s and task groups, but not `Task { … }`.
    ///
    /// Values of this thread need not be `Sendable` for `body` to use them; the compiler refuses to pass them on to
    /// other actors. `withTaskExecutorPreference` with another executor moves the body away from this thread without
    /// the compiler noticing, so use it for `Sendable` values only.
    ///
    /// `stop()` cancels the task; the call still returns only when `body` does. A virtual clock advances while `body`
    /// waits for other threads, except for threads whose work this loop counts as external, such as those on which an
    /// actor without a custom executor runs for `body`.
    ///
    /// - Throws:
    ///   - The error that `body` throws.
    ///   - `SystemError`, as `run()` does, before `body` has begun.
    ///   - `DispatchError.badInput` in a job of the main actor: `body` would wait for that job, and so never run. Await
    ///     the function there instead.
    ///   - `DispatchError.badInput` in a method of another actor, if `body` uses that actor's state: the method
    ///     occupies the actor, for which `body` would wait. An actor that lives on this loop is exempt. An actor that
    ///     `body` only awaits is not detected; its methods must not wait here.
    @available(*, noasync, message: "call the async function itself")
    @discardableResult
    public func run<Value>(_ body: @escaping @isolated(any) () async throws -> Value) throws -> Value {
        try checkWhetherItCanTurn()
        assertOwner()
        // A body is not `Sendable`, so the caller runs on the actor that the body is isolated to. The main actor's jobs
        // run between those of the main thread's loop; see `MainActorQueue.isRunningJobs`.
        if let actor = body.isolation, !(actor is MainActor), !isExecutor(of: actor) {
            throw DispatchError.badInput(
                "EventLoop.run { … } in a method of the actor \(type(of: actor)), with a body of that actor, which would wait "
                    + "for this method to return; make the method async, or have the actor live on the loop")
        }
        if mainActor.isRunningJobs {
            throw DispatchError.badInput(
                "EventLoop.run { … } in a job of the main actor, which the async function would wait for; await it instead"
            )
        }
        // Everything that can fail is done first: once begun, the body must not outlive this call.
        if !hasWaker { try openDescriptors() }
        defer { stopRequested = false }
        let home = remote
        let outcome = BodyOutcome<Value>()
        // Sound because the task's executor is this thread's loop: `body` and its captures are used on no other thread.
        let body = OnThread<() async throws -> Value>(body)
        let task = whileDriven {
            Task.immediate(executorPreference: home) {
                do { outcome.result = .success(try await body.value()) } catch { outcome.result = .failure(error) }
            }
        }
        while true {
            if let result = outcome.result { return try result.get() }
            if mustReturn {
                stopRequested = false
                task.cancel()
            }
            // The stack was checked before the body began. One more check, in a deeper frame, could fail.
            do { try drive(.wait) } catch {
                fatalError("EventLoop.run { … } cannot continue, and its body must not outlive it: \(error)")
            }
        }
    }

    /// Whether the jobs of `actor` run on this loop, or between its jobs on the main thread.
    package func runsJobs(of actor: any Actor) -> Bool {
        actor is MainActor ? mainActor.isServed : isExecutor(of: actor)
    }

    // @unchecked: written by the task and read by the waiting call, both on the loop's thread.
    private final class BodyOutcome<Value>: @unchecked Sendable {
        var result: Result<Value, any Error>?
    }
}
