import CLinux

extension EventLoop {
    /// As `enqueue(_:_:)`, for a job that was enqueued because a task prefers this loop. A job that processes a default
    /// actor runs elsewhere: see `DefaultActorJob`.
    func enqueue(_ job: UnownedJob, ofTask purpose: SwiftJob.Purpose) {
        if DefaultActorJob.isNeeded(for: job) { return DefaultActorJob.enqueue(job, purpose, self) }
        enqueue(job, purpose)
    }
}

/// A job that processes a default actor: one without a custom executor.
///
/// When a task calls an idle default actor, Swift enqueues such a job on the executor that the task prefers. The job
/// runs everything that waits for the actor, including calls of other tasks. On a loop's thread that would be wrong
/// twice: a handler that the actor's code attaches would belong to the loop, and run there while the actor runs
/// elsewhere, although the compiler takes it for isolated to the actor; and a loop that stands still or has ended would
/// hold up all callers of the actor. So the job runs on a few threads of the library, which drive no loop. (A
/// synchronous test blocks a thread of Swift's pool, see `Promise.init(async:)`.)
///
/// The loop counts the job as external work: it stays alive, and a virtual clock stands still, until the actor has been
/// processed and the task has been enqueued on the loop again.
enum DefaultActorJob {
    private static let threads = LibraryWorkers {
        ThreadPoolWorkers("actors", ThreadPool.defaultThreads, .max, keepsJobs: true)
    }

    static func isNeeded(for job: UnownedJob) -> Bool {
        // Sound because `UnownedJob` is a frozen structure of one pointer. The job cannot end before it has run.
        clinux_processes_default_actor(unsafeBitCast(job, to: UnsafeMutableRawPointer.self))
    }

    /// Any thread.
    static func enqueue(_ job: UnownedJob, _ purpose: SwiftJob.Purpose, _ loop: EventLoop) {
        // In a forked child the task belongs to the parent, and so do the threads.
        if loop.isForked { return }
        loop.shared.work.externalWork.begin()
        let processing = PoolJob {
            SwiftJob.run(job, purpose, nil)
            loop.endExternalWork()
        }
        let workers = threads.ofThisProcess
        // No refusal is possible: the queue has no limit, and keeps jobs.
        if (try? workers.take(processing)) == false { loop.startThreadLater(of: workers) }
    }
}
