import Reactor

extension Promise where T: Sendable {
    /// Makes a promise that settles with the result of the async function `body`.
    ///
    /// ```swift
    /// let answer = Promise { try await ask() }
    /// ```
    ///
    /// Connects promises to `await`. Cancelling the promise cancels the task. The promise is then rejected when the
    /// task has ended, whatever its result. Until then this thread's loop counts the task as external work. The body
    /// has the caller's task-local values.
    /// - Parameter body: runs in a new task, on the library's threads.
    /// - Returns: a promise. If no thread for async bodies can be started, it is rejected with the `SystemError` from
    ///   `pthread_create`, without calling `body`.
    public init(
        _ file: StaticString = #fileID, _ line: UInt = #line, async body: @escaping @Sendable () async throws -> T
    ) {
        let core = ExternalCore.ofTask(T.self, file, line)
        self.init(core.traced(Self.self, file, line))
        let resolver = Resolver<T>(core)
        do {
            try AsyncBodyExecutor.startThreadIfNeeded()
            core.start { do { resolver.fulfill(try await body()) } catch { resolver.reject(error) } }
        } catch { resolver.reject(error) }
    }
}

extension Promise where T: Sendable {
    /// Makes a promise that settles with the result of the async function `body`, which runs on this thread's loop.
    ///
    /// ```swift
    /// let rows = Promise(on: .current) { try await session.query("SELECT 1") }
    /// ```
    ///
    /// `body` begins at once and continues in the loop's jobs, even after it has awaited code that runs elsewhere.
    /// `body`, and the actorless async functions that it calls, may use values that belong to this thread, `Sendable`
    /// or not. As with every handler, the compiler does not see all uses of such values in a concurrent `Task`; see
    /// docs/guides/async.md.
    ///
    /// Cancelling the promise cancels the task. The promise is then rejected when the task has ended. The loop stays
    /// alive until then. If the loop ends first, it rejects the promise with `PromiseError.loopEnded` and cancels the
    /// task.
    /// - Parameters:
    ///   - loop: this thread's loop.
    ///   - body: runs in a new task. If it belongs to an actor, the actor must live on this loop.
    /// - Returns: a promise. If `loop` or the actor of `body` belongs elsewhere, it is rejected with
    ///   `DispatchError.badInput`, without calling `body`.
    @available(*, noasync, message: "an async function calls the body, or starts a task")
    public init(
        on loop: EventLoop, _ file: StaticString = #fileID, _ line: UInt = #line,
        async body: @escaping @isolated(any) () async throws -> T
    ) {
        if let error = loop.refusal(of: body.isolation) {
            self.init(error: error, file, line)
            return
        }
        let core = ExternalCore.ofTask(T.self, file, line)
        self.init(core.traced(Self.self, file, line))
        let resolver = Resolver<T>(core)
        core.start(on: loop, at: CallSite(file, line)) {
            do { resolver.fulfill(try await body()) } catch { resolver.reject(error) }
        }
    }
}

extension EventLoop {
    fileprivate func refusal(of actor: (any Actor)?) -> DispatchError? {
        guard isUsableHere else { return .badInput("a body for the loop of another thread; use its remote") }
        guard let actor, !runsJobs(of: actor) else { return nil }
        return .badInput(
            "a body of the actor \(type(of: actor)), which does not live on this loop; await the actor's methods in a "
                + "body that belongs to no actor")
    }
}

extension Guarantee where T: Sendable {
    /// Makes a guarantee that is fulfilled with the result of the async function `body`; see `Promise`'s initializer.
    ///
    /// ```swift
    /// let size = Guarantee { await cache.count }
    /// ```
    ///
    /// Cancelling the guarantee cancels the task. When the task has ended, the handlers are released without being
    /// called; see `cancel()`. If no thread can be started, `body` waits for one; see `LogEvent.threadShortage`.
    public init(
        _ file: StaticString = #fileID, _ line: UInt = #line, async body: @escaping @Sendable () async -> T
    ) {
        let core = ExternalCore.ofTask(T.self, file, line)
        self.init(core.traced(Self.self, file, line))
        let resolver = Resolver<T>(core)
        if (try? AsyncBodyExecutor.startThreadIfNeeded()) == nil { AsyncBodyExecutor.startThreadLater() }
        core.start { resolver.fulfill(await body()) }
    }
}

/// Runs the tasks for async bodies. Swift's own pool has one thread per core, and a synchronous test blocks such a
/// thread in `hang`. As many tests as cores would leave no thread for the work that they wait for.
final class AsyncBodyExecutor: TaskExecutor {
    static let shared = AsyncBodyExecutor()

    private static let threads = LibraryWorkers {
        ThreadPoolWorkers("async", ThreadPool.defaultThreads, .max, keepsJobs: true)
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        // Cannot fail: the queue has no limit and keeps jobs, since a running task cannot be refused.
        _ = try? Self.threads.ofThisProcess.take(
            PoolJob { job.runSynchronously(on: self.asUnownedTaskExecutor()) })
    }

    /// The first thread stays.
    static func startThreadIfNeeded() throws(SystemError) { try threads.ofThisProcess.startThreadIfNeeded() }

    static func startThreadLater() {
        EventLoop.ofCurrentThread.loopToNotify.startThreadLater(of: threads.ofThisProcess)
    }
}

private enum TaskStage {
    case running
    /// The task should end. The promise is rejected when the task has ended.
    case cancelled((any Error)?)
    case ended
}

extension ExternalCore {
    fileprivate static func ofTask<Value>(_ type: Value.Type, _ file: StaticString, _ line: UInt) -> ExternalCore {
        ExternalCore(type, madeAt: CallSite(file, line))
    }

    /// This thread's loop counts the task as external work.
    fileprivate func start(_ work: @escaping @Sendable () async -> Void) {
        let home = EventLoop.ofCurrentThread.loopToNotify
        let stage = LockedValue(TaskStage.running)
        home.beginExternalWork()
        // Belongs to no actor, like this function, since an actor's thread may be blocked in `hang`.
        cancels(
            Task(executorPreference: AsyncBodyExecutor.shared) { [self] in
                if home.isVirtual { await VirtualTasks.run(for: home, work) } else { await work() }
                taskDidEnd(stage)
                home.endExternalWork()
            }, stage)
    }

    fileprivate func start(on loop: EventLoop, at callSite: CallSite, _ work: @escaping () async -> Void) {
        let stage = LockedValue(TaskStage.running)
        var task: Task<Void, Never>?
        let hold = loop.hold(at: callSite)
        let ending = loop.whenEnding { [self] in
            task?.cancel()
            // The task may then wait forever, for example for one of the loop's timers.
            if claim() { reject(PromiseError.loopEnded) } else { taskDidEnd(stage) }
        }
        // Sound because the task's executor is bound to this thread. No other thread uses `work`, its captures, or the
        // loop unless the loop has ended. A body isolated to an actor also runs on this thread, as checked.
        let (work, loop) = (OnThread(work), OnThread(loop))
        let started = Task.immediate(executorPreference: ThreadBoundExecutor(loop.value)) { [self] in
            await work.value()
            taskDidEnd(stage)
            hold.cancel()
            // After the loop has ended, this may be another thread.
            if !loop.value.hasEnded { loop.value.forgetEnding(ending) }
        }
        task = started
        cancels(started, stage)
    }

    private func cancels(_ task: Task<Void, Never>, _ stage: LockedValue<TaskStage>) {
        onCancel = { core, error in
            let isRunning = stage.withLock { stage in
                if case .ended = stage { return false }
                stage = .cancelled(error)
                return true
            }
            task.cancel()
            if !isRunning { core.rejectCancelled(with: error, at: core.callSite) }
        }
    }

    private func taskDidEnd(_ stage: LockedValue<TaskStage>) {
        let last = stage.withLock { stage in
            defer { stage = .ended }
            return stage
        }
        if case .cancelled(let error) = last { rejectCancelled(with: error, at: callSite) }
    }
}
