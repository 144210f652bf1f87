import CLinux

/// A few threads for work that would block a loop: long computations and blocking calls.
///
/// ```swift
/// image.map(on: ThreadPool.shared) { try resize($0) }.done { show($0) }
/// ```
///
/// Jobs begin in the order of dispatch. A thread starts when a job arrives and none is free, up to the limit, and then
/// stays. Threads have the pool's name and a number. They block all signals except faults; a child process that a job starts without
/// this library inherits that mask. A pool whose last reference is released runs its remaining jobs and ends.
///
/// A job that waits for another job in the same pool may wait forever, since that job may never get a thread.
///
/// Nothing drives the loop of a pool's thread. After each job, the loop's ready jobs run. Waiting handlers, timers and
/// watches are then reported and released without being run, as at a thread's end; hooks and holds end too. So leave
/// nothing waiting there, or drive the loop until nothing waits, which blocks the thread.
public final class ThreadPool: Dispatcher {
    package let threads: ThreadPoolWorkers
    private let isShared: Bool

    /// A pool for general use, with the default size and the name "shared". It never ends.
    public static let shared = ThreadPool(
        ThreadPoolWorkers("shared", defaultThreads, 65_536), isShared: true)

    /// The number of usable cores, since more threads would only share them. At least two, so one blocking job does not
    /// stop all others. At most eight, because the default is meant for occasional work next to a single loop.
    package static let defaultThreads = min(max(Int(clinux_usable_cores()), 2), 8)

    /// Creates a pool without threads.
    /// - Parameters:
    ///   - name: the name of the threads, followed by a number: "pool-1". Linux shows 15 bytes; a long name is cut
    ///     before the number.
    ///   - threads: the most threads, at least 1. The default is the number of usable cores, clamped to 2…8.
    ///   - queueLimit: the most jobs that wait for a thread, at least 1. The default allows about 10 MB of closures; a
    ///     pool with a longer queue would not catch up.
    /// - Throws: `DispatchError.badInput` if a number is below 1.
    public convenience init(
        name: String = "pool", threads: Int? = nil, queueLimit: Int = 65_536
    ) throws(DispatchError) {
        try self.init(
            name: name, threads: threads ?? Self.defaultThreads, queueLimit: queueLimit, create: LibraryThread.create)
    }

    package convenience init(
        name: String, threads: Int, queueLimit: Int, create: @escaping LibraryThread.Create
    ) throws(DispatchError) {
        if threads < 1 { throw .badInput("ThreadPool(threads: \(threads)): there must be at least 1") }
        if queueLimit < 1 { throw .badInput("ThreadPool(queueLimit: \(queueLimit)): it must be at least 1") }
        self.init(ThreadPoolWorkers(name, threads, queueLimit, create), isShared: false)
    }

    private init(_ threads: ThreadPoolWorkers, isShared: Bool) {
        self.threads = threads
        self.isShared = isShared
    }

    // Does not wait for the threads, since it may run on one of them.
    deinit { threads.closeWithoutWaiting() }

    /// Runs `job` on one of the threads when one is free. Any thread.
    /// - Throws: `DispatchError.queueIsFull`, `.poolIsShutDown` or `.poolIsForked`; `SystemError` from `pthread_create`
    ///   if the pool has no thread and none can be started.
    public func dispatch(_ job: @escaping @Sendable () -> Void) throws { try threads.take(PoolJob(job)) }

    /// Refuses further jobs, runs the waiting ones, and returns when all threads have ended. Further calls do nothing.
    ///
    /// Blocks the calling thread, which may be any. When a job calls this on its own pool, it returns at once, and the
    /// threads end later. Does nothing for `ThreadPool.shared`.
    @available(*, noasync, message: "it blocks its thread; release the pool, which then ends by itself")
    public func shutDown() {
        if !isShared { threads.shutDown() }
    }

    /// A pool's metrics.
    public struct Metrics: Hashable, Sendable {
        /// Started threads.
        public let threads: Int
        /// Threads that are running a job.
        public let busy: Int
        /// Jobs that wait for a thread.
        public let queued: Int
        /// Jobs that have run since the pool was created.
        public let completed: Int
        package let threadLimit: Int
        package let queueLimit: Int
    }

    package var name: String { threads.name }

    package var isForked: Bool { threads.isForked }

    /// The pool's current metrics. Any thread.
    public var metrics: Metrics { threads.metrics }
}

extension Optional where Wrapped == any Dispatcher {
    /// `ThreadPool.shared`, for shorter dispatcher arguments: `map(on: .shared) { … }`.
    public static var shared: (any Dispatcher)? { ThreadPool.shared }
}
