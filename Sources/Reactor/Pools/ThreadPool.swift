import CLinux

/// A few threads for work that would block a loop: long computations, and blocking calls.
///
/// ```swift
/// image.map(on: ThreadPool.shared) { try resize($0) }.done { show($0) }
/// ```
///
/// Jobs begin in the order in which they were dispatched. A thread is started when a job arrives and no thread is free,
/// up to the limit, and then stays. Threads are named after the pool, with a number. They block all signals; a child
/// process that a job starts without this library inherits that mask. When the last reference to a pool is released,
/// the pool runs its remaining jobs and ends.
///
/// A job that blocks until another job of the same pool has run may wait forever: no thread may be left for the other
/// job.
///
/// No thread drives the loop of a pool's thread. After each job, the ready jobs on that loop run. Handlers, timers and
/// watches that still wait on it are then released without being run, and reported, as at the end of a thread; hooks and
/// holds end too. So do not leave anything waiting on that loop, or drive the loop until nothing waits, which blocks the
/// thread.
public final class ThreadPool: Dispatcher {
    package let threads: ThreadPoolWorkers
    private let isShared: Bool

    /// A pool for general use: of the default size, named "shared". It never ends.
    public static let shared = ThreadPool(
        ThreadPoolWorkers("shared", defaultThreads, 65_536), isShared: true)

    /// The number of cores that the process may use, since more threads would only share
    /// the cores. At least two, so that one blocking job does not stop all others; at most eight, since the default
    /// pool is meant for occasional work next to a single loop, which hands out the jobs and collects the results.
    package static let defaultThreads = min(max(Int(clinux_usable_cores()), 2), 8)

    /// Creates a pool, which starts no thread yet.
    /// - Parameters:
    ///   - name: the name of the threads, to which a number is added: "pool-1". Linux shows 15 bytes; the name is cut
    ///     so that the number remains.
    ///   - threads: the largest number of threads, at least 1; by default the number of cores that the process may use,
    ///     between 2 and 8.
    ///   - queueLimit: the largest number of jobs that wait for a free thread, at least 1. The default is some 10 MB of
    ///     closures: a pool that is so far behind would not catch up with more.
    /// - Throws: `DispatchError.badInput` if a number is below 1.
    public convenience init(
        name: String = "pool", threads: Int? = nil, queueLimit: Int = 65_536
    ) throws(DispatchError) {
        try self.init(
            name: name, threads: threads ?? Self.defaultThreads, queueLimit: queueLimit, create: LibraryThread.create)
    }

    /// As the public initializer, with a thread starter that a test has replaced.
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

    // This may run on one of the pool's own threads, so it does not wait for them.
    deinit { threads.closeWithoutWaiting() }

    /// Runs `job` on one of the threads, when one is free. May be called on any thread.
    /// - Throws: `DispatchError.queueIsFull`, `.poolIsShutDown` or `.poolIsForked`; `SystemError` of `pthread_create`
    ///   if the pool has no thread at all and none can be started.
    public func dispatch(_ job: @escaping @Sendable () -> Void) throws { try threads.take(PoolJob(job)) }

    /// Refuses further jobs, runs the waiting ones, and ends the threads. Returns when all threads have ended. Further
    /// calls do nothing.
    ///
    /// Blocks the calling thread, which may be any. Called by a job of the pool itself, it returns at once, and the
    /// threads end later. Does nothing for `ThreadPool.shared`, which never ends.
    @available(*, noasync, message: "it blocks its thread; release the pool, which then ends by itself")
    public func shutDown() {
        if !isShared { threads.shutDown() }
    }

    /// The metrics of a pool.
    public struct Metrics: Hashable, Sendable {
        /// Threads that have been started.
        public let threads: Int
        /// Threads that are running a job.
        public let busy: Int
        /// Jobs that wait for a thread.
        public let queued: Int
        /// Jobs that have run, since the pool was created.
        public let completed: Int
        /// The largest number of threads.
        package let threadLimit: Int
        /// The largest number of waiting jobs; a further job is refused.
        package let queueLimit: Int
    }

    package var name: String { threads.name }

    /// Whether this process is a fork of the one that owns these threads.
    package var isForked: Bool { threads.isForked }

    /// The pool's current metrics. Any thread may read them.
    public var metrics: Metrics { threads.metrics }
}

extension Optional where Wrapped == any Dispatcher {
    /// `ThreadPool.shared`, as a shorthand where an operator takes a dispatcher: `map(on: .shared) { … }`.
    public static var shared: (any Dispatcher)? { ThreadPool.shared }
}
