import Testing

// Integrations compiles this file too, together with those of TestSupport that it needs.
#if canImport(TestSupport)
    import TestSupport
#endif

/// Runs each test on a thread of its own instead of one of Swift's pool: for a test that blocks its thread until a task or an
/// actor has run. The pool has as many threads as the machine has processors, and as many such tests would wait for each other
/// forever.
struct OwnThread: TestTrait, SuiteTrait, TestScoping {
    /// Each test and each case gets a thread, and not the suite one.
    var isRecursive: Bool { true }

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try await withTaskExecutorPreference(ThreadPerJob()) { try await function() }
    }
}

extension Trait where Self == OwnThread {
    static var ownThread: Self { OwnThread() }
}

/// Starts a thread for each job. A test without `await` is one job.
private final class ThreadPerJob: TaskExecutor {
    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let thread = TestThread { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
        thread.detach()
    }
}
