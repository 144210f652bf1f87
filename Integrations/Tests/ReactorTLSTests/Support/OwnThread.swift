import Glibc
import Testing

/// Runs each test on a thread of its own instead of one of Swift's pool: for a test that blocks its thread until a task has
/// run. The pool has as many threads as the machine has processors, and as many such tests would wait for each other forever.
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
        let work = Unmanaged.passRetained(Work(UnownedJob(job), self))
        var thread = pthread_t()
        let code = pthread_create(
            &thread, nil,
            {
                let work = Unmanaged<Work>.fromOpaque($0!).takeRetainedValue()
                work.job.runSynchronously(on: work.executor.asUnownedTaskExecutor())
                return nil
            }, work.toOpaque())
        precondition(code == 0, "pthread_create failed with \(code)")
        pthread_detach(thread)
    }

    private final class Work: Sendable {
        let job: UnownedJob
        let executor: ThreadPerJob

        init(_ job: UnownedJob, _ executor: ThreadPerJob) {
            self.job = job
            self.executor = executor
        }
    }
}
