import CLinux

extension EventLoop {
    func enqueue(_ job: UnownedJob, ofTask purpose: SwiftJob.Purpose) {
        if DefaultActorJob.isNeeded(for: job) { return DefaultActorJob.enqueue(job, purpose, self) }
        enqueue(job, purpose)
    }
}

/// A job that processes a default actor, an actor without a custom executor.
///
/// When a task calls an idle default actor, Swift enqueues this job on the task's preferred executor. The job then
/// serves all callers that wait for the actor. On a loop's thread, handlers that the actor's code attaches would run on
/// the loop, although the compiler assumes that they are isolated to the actor. A stalled or ended loop would block the
/// actor's callers. So a few library threads without loops run the job. (Swift's pool does not, since a synchronous
/// test blocks one of its threads, see `Promise.init(async:)`.)
///
/// The loop counts the job as external work. So until the task is back on the loop, the loop stays alive, and a virtual
/// clock stands still.
enum DefaultActorJob {
    private static let threads = LibraryWorkers {
        ThreadPoolWorkers("actors", ThreadPool.defaultThreads, .max, keepsJobs: true)
    }

    static func isNeeded(for job: UnownedJob) -> Bool {
        // Sound: `UnownedJob` is a frozen structure with one pointer, and the job lives until it has run.
        clinux_processes_default_actor(unsafeBitCast(job, to: UnsafeMutableRawPointer.self))
    }

    /// Any thread.
    static func enqueue(_ job: UnownedJob, _ purpose: SwiftJob.Purpose, _ loop: EventLoop) {
        if loop.isForked { return }
        loop.shared.work.externalWork.begin()
        let processing = PoolJob {
            SwiftJob.run(job, purpose, nil)
            loop.endExternalWork()
        }
        let workers = threads.ofThisProcess
        // Never refused: the queue keeps all jobs.
        if (try? workers.take(processing)) == false { loop.startThreadLater(of: workers) }
    }
}
