import ReactorLibc
import Synchronization

/// Runs the Swift jobs of ended loops on a separate thread, because the enqueuing thread may hold any lock. Without a
/// thread, the jobs wait for the next job or end of a loop, which usually frees a thread.
enum EndedLoopJobs {
    // One thread, to preserve isolation.
    private static let threads = LibraryWorkers { ThreadPoolWorkers("ended-loops", 1, .max, keepsJobs: true) }
    /// True when jobs wait because no thread could be started.
    private static let awaitsThread = Atomic(false)
    private static let hasReportedShortage = Atomic(false)

    /// Attempts to start the thread when a loop ends, and the pause between them in microseconds.
    private static var mostTries: Int { 100 }
    private static var pause: UInt32 { 1000 }

    /// Any thread.
    static func enqueue(_ body: @escaping @Sendable () -> Void) {
        let workers = threads.ofThisProcess
        // Never refused: the queue keeps all jobs.
        if (try? workers.take(PoolJob(body))) == false { awaitsThread.store(true, ordering: .relaxed) }
    }

    /// Starts a missing thread when a loop ends. Gives up after a tenth of a second, until the next call.
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
