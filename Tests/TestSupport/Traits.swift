import Testing

/// Runs each test on a separate thread instead of one of Swift's pool, which has as many threads as the machine has
/// processors:
///
/// - for a test that blocks its thread until a task or an actor has run: as many such tests as there are threads would
///   wait for each other forever;
/// - for a test that waits for a deadline or a process most of its time, so that others use the processor;
/// - for an exit test: on the pool it resumes after all waiting tests, and until it has taken the status of its child,
///   the thread of Swift Testing that waits for children spins. That was 30 of the 100 seconds of processor time of a
///   run.
package struct OwnThread: TestTrait, SuiteTrait, TestScoping {
    /// Each test and each case gets a thread, not the whole suite.
    package var isRecursive: Bool { true }

    package func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try await Self.$isOn.withValue(true) {
            try await withTaskExecutorPreference(ThreadPerJob()) { try await function() }
        }
    }

    @TaskLocal fileprivate static var isOn = false
}

extension Trait where Self == OwnThread {
    package static var ownThread: Self { OwnThread() }
}

/// Starts a thread for each job. A test without `await` is one job.
private final class ThreadPerJob: TaskExecutor {
    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let thread = TestThread { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
        thread.detach()
    }
}

/// Runs each test inside a call of a function, such as one that makes an event loop: what that sets up need not be a
/// closure around the body of every test.
package struct Around: TestTrait, SuiteTrait, TestScoping {
    private let surround: @Sendable (() -> Void) -> [String]

    package var isRecursive: Bool { true }

    /// - Parameter surround: calls its argument once, on the same thread.
    package init(_ surround: @escaping @Sendable (() -> Void) -> Void) {
        self = .checking { body in
            surround(body)
            return []
        }
    }

    private init(_ surround: @escaping @Sendable (() -> Void) -> [String]) { self.surround = surround }

    /// - Parameter surround: calls its argument once, on the same thread, and returns why the test fails.
    package static func checking(_ surround: @escaping @Sendable (() -> Void) -> [String]) -> Self { Self(surround) }

    package func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        let (complaints, complain) = AsyncStream<[String]>.makeStream()
        let executor = JobsWithin(hasOwnThread: OwnThread.isOn) { [surround] body in complain.yield(surround(body)) }
        let outcome: Result<Void, any Error>
        do { outcome = .success(try await withTaskExecutorPreference(executor) { try await function() }) } catch {
            outcome = .failure(error)
        }
        for complaint in await complaints.first(where: { _ in true }) ?? [] {
            Issue.record(Comment(rawValue: complaint), sourceLocation: test.sourceLocation)
        }
        try outcome.get()
    }
}

/// Runs jobs inside a call each, on the threads of Swift's pool or on threads of their own. A test without `await` is one
/// job.
private final class JobsWithin: TaskExecutor {
    private let hasOwnThread: Bool
    private let surround: @Sendable (() -> Void) -> Void

    init(hasOwnThread: Bool, _ surround: @escaping @Sendable (() -> Void) -> Void) {
        self.hasOwnThread = hasOwnThread
        self.surround = surround
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        if hasOwnThread {
            TestThread { self.run(job) }.detach()
        } else {
            Task.detached { self.run(job) }
        }
    }

    private func run(_ job: UnownedJob) {
        surround { job.runSynchronously(on: asUnownedTaskExecutor()) }
    }
}
