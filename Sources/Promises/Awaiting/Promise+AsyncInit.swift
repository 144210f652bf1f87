import Reactor

extension Promise where T: Sendable {
    /// A promise that settles as the async function `body` does, which runs in a task of its own, on a few threads of the
    /// library's: from the world of promises to that of `await`.
    ///
    /// ```swift
    /// let answer = Promise { try await ask() }
    /// ```
    ///
    /// Cancelling the promise cancels the task; what that brings afterwards is ignored. This thread's loop counts the task
    /// among what it waits for, until it has ended.
    public init(
        _ file: StaticString = #fileID, _ line: UInt = #line, async body: @escaping @Sendable () async throws -> T
    ) {
        let core = TaskCore(T.self, file, line)
        self.init(core.traced(Self.self, file, line))
        let resolver = Resolver<T>(core)
        core.start { do { resolver.fulfill(try await body()) } catch { resolver.reject(error) } }
    }
}

extension Guarantee where T: Sendable {
    /// A guarantee that is fulfilled with what the async function `body` returns, which runs in a task of its own; see the
    /// form of `Promise`.
    ///
    /// ```swift
    /// let size = Guarantee { await cache.count }
    /// ```
    ///
    /// Cancelling the guarantee cancels the task, and releases the guarantee's handlers uncalled; see `cancel()`.
    public init(
        _ file: StaticString = #fileID, _ line: UInt = #line, async body: @escaping @Sendable () async -> T
    ) {
        let core = TaskCore(T.self, file, line)
        self.init(core.traced(Self.self, file, line))
        let resolver = Resolver<T>(core)
        core.start { resolver.fulfill(await body()) }
    }
}

/// Where such tasks run. Not on Swift's own pool, of a thread for each core: a synchronous test runs on one of those, and
/// its `hang` holds it. As many tests at a time as there are cores, and nothing would be left for what they wait for.
final class AsyncBodyExecutor: TaskExecutor {
    static let shared = AsyncBodyExecutor()

    // The count is fit, and the limit nothing that would be reached: a task that is under way cannot be refused.
    private let pool = try! ThreadPool(name: "async", queueLimit: .max)

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        do { try pool.dispatch { job.runSynchronously(on: self.asUnownedTaskExecutor()) } } catch {
            // There is no thread to be had.
            globalConcurrentExecutor.enqueue(job)
        }
    }
}

/// A promise that a task settles.
// @unchecked: as PromiseCore. `task` is written before anybody else has the promise.
private final class TaskCore: PromiseCore, @unchecked Sendable {
    private let place: CallSite
    // A circle until the task has ended, which lets go of what it holds.
    private var task: Task<Void, Never>?

    init<Value>(_ type: Value.Type, _ file: StaticString, _ line: UInt) {
        place = CallSite(file, line)
        super.init(state: State.pending, loop: EventLoop.addressOfThisThread, role: .externallySettled) {
            PromiseCore.perform(Follow<Value>.self, $0, $1)
        }
    }

    /// Starts the task that is to settle this promise, which this thread's loop counts among what it waits for.
    func start(_ work: @escaping @Sendable () async -> Void) {
        let home = EventLoop.ofCurrentThread.loopToNotify
        home.beginExternalWork()
        // Detached: a task of this context may belong to an actor whose thread `hang` holds.
        task = Task.detached(executorPreference: AsyncBodyExecutor.shared) {
            await work()
            home.endExternalWork()
        }
    }

    override var creationSite: CallSite? { place }

    override func cancelProducer() -> Bool {
        guard claim() else { return false }
        task?.cancel()
        return true
    }
}
