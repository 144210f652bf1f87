import CLinux
import ReactorLibc
import Synchronization

/// The main actor's jobs on a loop. Swift puts them into libdispatch's main queue, which nothing on Linux drains while
/// the main thread waits in epoll. So the main thread's loop watches that queue, and runs its jobs between the loop's
/// own.
///
/// Invariant: used on the loop's thread only. A class, because the jobs may use the loop and thereby this object.
final class MainActorQueue {
    /// True for the main thread's loop; `nil` before this is known.
    private var isOnMainThread: Bool?
    private(set) var isRunningJobs = false
    private(set) var isWatched = false

    /// True when the loop runs the main actor's jobs, on the main thread. False in a forked child, where jobs and
    /// eventfd belong to the parent.
    var isServed: Bool {
        if let known = isOnMainThread { return known && ForkDetector.generation == 0 }
        let isOnMainThread = clinux_gettid() == getpid()
        self.isOnMainThread = isOnMainThread
        return isOnMainThread && ForkDetector.generation == 0
    }

    /// Watches the queue once the loop has an epoll descriptor. Without libdispatch there is no queue.
    func watch(_ poller: inout Poller, _ kernel: CountingSyscalls) throws(SystemError) {
        guard isServed, let fd = try descriptor(kernel) else { return }
        // Edge-triggered, so this loop need not read the eventfd, and another reader, such as Foundation's run loop,
        // takes nothing away.
        try poller.add(.mainActor, fd, kernel)
        isWatched = true
    }

    /// libdispatch's eventfd; `nil` in a program without libdispatch.
    ///
    /// libdispatch opens the eventfd at the first request or job, and ends the process with SIGILL if no descriptor is
    /// free. So this function first opens a descriptor itself. Another thread may still take the last one within those
    /// microseconds.
    /// - Throws: `SystemError` from `eventfd`, such as `EMFILE`.
    func descriptor(_ kernel: CountingSyscalls) throws(SystemError) -> CInt? {
        guard clinux_has_main_queue() else { return nil }
        if !Self.isKnownToBeOpen.load(ordering: .relaxed) {
            kernel.close(CInt(try kernel.eventCreate().orThrow(.eventCreate, "for the main actor's jobs")))
            Self.isKnownToBeOpen.store(true, ordering: .relaxed)
        }
        return clinux_main_queue()
    }

    private static let isKnownToBeOpen = Atomic(false)

    /// Runs about as many jobs as have arrived, so a chain of jobs cannot occupy the loop. If more are left, writes the
    /// eventfd again.
    func runJobs() {
        if isServed, clinux_has_main_queue() { runServedJobs() }
    }

    private func runServedJobs() {
        let outer = isRunningJobs
        isRunningJobs = true
        clinux_run_main_queue()
        isRunningJobs = outer
    }

    /// - Returns: true if there were any.
    func runLateJobs(_ kernel: CountingSyscalls) -> Bool {
        guard isServed else { return false }
        var count: UInt64 = 0
        // If the eventfd cannot be opened, no job has arrived.
        guard let queue = try? descriptor(kernel), read(queue, &count, 8) == 8 else { return false }
        runServedJobs()
        return true
    }
}
