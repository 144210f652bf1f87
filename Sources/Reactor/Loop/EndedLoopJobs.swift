import ReactorLibc
import Synchronization

/// Runs the Swift jobs of ended loops on a separate thread: jobs are neither nested nor run on the thread that enqueues
/// them, which may hold any lock.
///
/// If no thread can be started, the jobs wait: for the next such job, or for the end of a loop. The thread that ends a
/// loop occupies a place in the process's limit, so this does not take long.
enum EndedLoopJobs {
    // One thread, so that isolation holds.
    private static let threads = LibraryWorkers { ThreadPoolWorkers("ended-loops", 1, .max, keepsJobs: true) }
    /// Whether jobs wait because no thread could be started.
    private static let awaitsThread = Atomic(false)
    private static let hasReportedShortage = Atomic(false)

    /// How often the end of a loop tries to start the thread, and the pause between tries in microseconds.
    private static var mostTries: Int { 100 }
    private static var pause: UInt32 { 1000 }

    /// Any thread: queues `body`. Does not wait.
    static func enqueue(_ body: @escaping @Sendable () -> Void) {
        let workers = threads.ofThisProcess
        // No refusal is possible: the queue has no limit, and keeps jobs.
        if (try? workers.take(PoolJob(body))) == false { awaitsThread.store(true, ordering: .relaxed) }
    }

    /// Called at the end of a loop: starts the thread if jobs wait for one. Without success after a tenth of a second,
    /// the jobs wait for the next call.
    static func awaitThread() {
        guard awaitsThread.load(ordering: .relaxed) else { return }
        for _ in 0..<mostTries {
            if (try? threads.ofThisProcess.startThreadIfNeeded()) != nil {
                return awaitsThread.store(false, ordering: .relaxed)
            }
            usleep(pause)
        }
        if hasReportedShortage.exchange(true, ordering: .relaxed) { return }
        LoopEvent.print(
            "no thread can be started for tasks whose event loop has ended; they wait for the end of another loop")
    }
}
