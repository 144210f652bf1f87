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
        let core = TaskCore(Origin(file, line)) { Core.perform(Follow<T>.self, $0, $1) }
        self.init(core.traced(Self.self, file, line))
        let resolver = Resolver<T>(core)
        let home = EventLoop.ofThisThread.homeOfJobs
        home.beginOutsideWork()
        // Detached: a task of this context may belong to an actor whose thread `hang` holds.
        core.task = Task.detached(executorPreference: AsyncThreads.shared) {
            do { resolver.fulfill(try await body()) } catch { resolver.reject(error) }
            home.endOutsideWork()
        }
    }
}

/// Where such tasks run. Not on Swift's own pool, of a thread for each core: a synchronous test runs on one of those, and
/// its `hang` holds it. As many tests at a time as there are cores, and nothing would be left for what they wait for.
final class AsyncThreads: TaskExecutor {
    static let shared = AsyncThreads()

    // The count is fit, and the limit nothing that would be reached: a task that is under way cannot be refused.
    private let pool = try! ThreadPool(name: "async", queueLimit: .max)

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        do { try pool.dispatch { job.runSynchronously(on: self.asUnownedTaskExecutor()) } } catch {
            // There is no thread to be had.
            globalConcurrentExecutor.enqueue(job)
        }
    }

    func run(_ job: @escaping @Sendable () -> Void) {
        do { try pool.dispatch(job) } catch { job() }
    }
}

/// A promise that a task settles.
// @unchecked: as Core. `task` is written before anybody else has the promise.
private final class TaskCore: Core, @unchecked Sendable {
    private let place: Origin
    // A circle until the task has ended, which lets go of what it holds.
    var task: Task<Void, Never>?

    init(_ place: Origin, code: @escaping (Core, Phase) -> Void) {
        self.place = place
        super.init(state: State.pending, loop: EventLoop.addressOfThisThread, role: .madeByHand, code: code)
    }

    override var placeOfMaking: Origin? { place }

    override func stopProducing() -> Bool {
        guard claim() else { return false }
        task?.cancel()
        return true
    }
}
