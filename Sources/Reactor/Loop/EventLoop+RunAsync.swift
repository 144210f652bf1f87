extension EventLoop {
    /// Runs an async function on this loop and drives the loop until the function returns, so a synchronous `main` or a
    /// test can call async code.
    ///
    /// ```swift
    /// let answer = try EventLoop.current.run {
    ///     let connection = try await firstly { connect(to: address) }.value
    ///     …
    /// }
    /// ```
    ///
    /// `body` begins at once and continues in the loop's jobs, between its handlers. Async functions that `body` calls
    /// run there too if they belong to no actor, including `async let`s and task groups, but not `Task { … }`.
    ///
    /// `body` may use this thread's values that are not `Sendable`; the compiler refuses to pass them to other actors.
    /// But it does not notice that `withTaskExecutorPreference` moves the body to another thread, so use only
    /// `Sendable` values there.
    ///
    /// `stop()` cancels the task, and the call returns when `body` does. While `body` waits for other threads, a
    /// virtual clock advances, except during external work, such as an actor without a custom executor.
    ///
    /// - Throws:
    ///   - The error that `body` throws.
    ///   - The same `SystemError`s as `run()`, before `body` has begun.
    ///   - `DispatchError.badInput` in one of the main actor's jobs, for which `body` would wait forever. Await the
    ///     function instead.
    ///   - `DispatchError.badInput` in a method of another actor, if `body` is isolated to that actor: `body` waits for
    ///     the actor, which the method occupies. Actors that live on this loop are exempt. An actor that `body` only
    ///     awaits is not detected, so its methods must not wait here.
    @available(*, noasync, message: "call the async function itself")
    @discardableResult
    public func run<Value>(_ body: @escaping @isolated(any) () async throws -> Value) throws -> Value {
        try checkWhetherItCanTurn()
        assertOwner()
        // `body` is not `Sendable`, so the caller runs on its actor. The main actor's jobs run between the loop's own;
        // see `MainActorQueue.isRunningJobs`.
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
        // Everything that can fail comes first, since a body that has begun must not outlive this call.
        if !hasWaker { try openDescriptors() }
        defer { stopRequested = false }
        let home = remote
        let outcome = BodyOutcome<Value>()
        // Sound: the task's executor is this thread's loop, so no other thread uses `body` and its captures.
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
            // No second check of the stack, which could fail in this deeper frame.
            do { try drive(.wait) } catch {
                fatalError("EventLoop.run { … } cannot continue, and its body must not outlive it: \(error)")
            }
        }
    }

    /// True when the jobs of `actor` run on this loop or, on the main thread, between this loop's jobs.
    package func runsJobs(of actor: any Actor) -> Bool {
        actor is MainActor ? mainActor.isServed : isExecutor(of: actor)
    }

    // @unchecked: the task writes the value and the waiting call reads it, both on the loop's thread.
    private final class BodyOutcome<Value>: @unchecked Sendable {
        var result: Result<Value, any Error>?
    }
}
