import CLinux
import ReactorLibc
import Synchronization

/// The main actor's jobs, for a loop. The main actor and the main thread's loop share a thread, and Swift puts the jobs
/// of `@MainActor` code into libdispatch's main queue. On Linux nothing drains that queue while the main thread waits
/// in epoll, so the jobs would never run. A loop that is driven on the main thread therefore watches that queue too,
/// and runs its jobs between its own.
///
/// Invariant: used on the loop's thread only. A class, because the jobs may use the loop, and so this object.
final class MainActorQueue {
    /// Whether the loop is the main thread's; `nil` means not known yet.
    private var isOnMainThread: Bool?
    /// Whether one of the main actor's jobs is being run.
    private(set) var isRunningJobs = false
    /// Whether libdispatch's eventfd is registered with the loop's epoll descriptor.
    private(set) var isWatched = false

    /// Whether the loop runs the main actor's jobs, because it is on the main thread. In a forked child the jobs
    /// belong to the parent, and so does the eventfd.
    var isServed: Bool {
        if let known = isOnMainThread { return known && ForkDetector.generation == 0 }
        let isOnMainThread = clinux_gettid() == getpid()
        self.isOnMainThread = isOnMainThread
        return isOnMainThread && ForkDetector.generation == 0
    }

    /// Watches the queue, as soon as the loop has an epoll descriptor. A program without libdispatch has no such queue.
    func watch(_ poller: inout Poller, _ kernel: CountingSyscalls) throws(SystemError) {
        guard isServed, let fd = try descriptor(kernel) else { return }
        // Edge-triggered, so the eventfd need not be read; and another reader, such as Foundation's run loop, takes
        // nothing away from this loop.
        try poller.add(.mainActor, fd, kernel)
        isWatched = true
    }

    /// Returns libdispatch's eventfd, or `nil` in a program without libdispatch.
    ///
    /// libdispatch opens the eventfd when it is asked for it first, or when the first job is queued, and ends the
    /// process with SIGILL if no descriptor is left. It is therefore asked only after a descriptor could be opened
    /// here. One risk remains: another thread that takes the last descriptor within those microseconds.
    /// - Throws: `SystemError` of `eventfd`, such as `EMFILE`.
    func descriptor(_ kernel: CountingSyscalls) throws(SystemError) -> CInt? {
        guard clinux_has_main_queue() else { return nil }
        if !Self.isKnownToBeOpen.load(ordering: .relaxed) {
            kernel.close(CInt(try kernel.eventCreate().orThrow(.eventCreate, "for the main actor's jobs")))
            Self.isKnownToBeOpen.store(true, ordering: .relaxed)
        }
        return clinux_main_queue()
    }

    /// Whether libdispatch is known to have opened its eventfd.
    private static let isKnownToBeOpen = Atomic(false)

    /// Runs about as many jobs as have arrived, so that a chain of them cannot occupy the loop. If more are left, the
    /// eventfd is written again.
    func runJobs() {
        if isServed { runServedJobs() }
    }

    private func runServedJobs() {
        let outer = isRunningJobs
        isRunningJobs = true
        clinux_run_main_queue()
        isRunningJobs = outer
    }

    /// For a loop that is about to end its `run()`: runs jobs that arrived since the loop last waited.
    /// - Returns: whether there were any.
    func runLateJobs(_ kernel: CountingSyscalls) -> Bool {
        guard isServed else { return false }
        var count: UInt64 = 0
        // If the eventfd cannot be opened, libdispatch has none, so no job has arrived.
        guard let queue = try? descriptor(kernel), read(queue, &count, 8) == 8 else { return false }
        runServedJobs()
        return true
    }
}
