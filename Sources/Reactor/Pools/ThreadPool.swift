import CLinux

/// A few threads for work that would block a loop: long computations and blocking calls.
///
/// ```swift
/// image.map(on: ThreadPool.shared) { try resize($0) }.done { show($0) }
/// ```
///
/// Jobs begin in the order of dispatch. A thread starts when a job arrives and none is free, up to the limit, and then
/// stays. Threads have the pool's name and a number. They block all signals, and a child process that a job starts
/// without this library inherits that mask. A pool without references runs its remaining jobs and ends.
///
/// A job that blocks until another job of the pool has run may wait forever, without a thread for that job.
///
/// Nothing drives the loop of a pool's thread. After each job, its ready jobs run. Waiting handlers, timers and watches
/// are then released without being run, and reported, as at the end of a thread; hooks and holds end too. So leave
/// nothing waiting there, or drive the loop until nothing waits, which blocks the thread.
public final class ThreadPool: Dispatcher {
    package let threads: ThreadPoolWorkers
    private let isShared: Bool

    /// A pool for general use, of the default size, named "shared". It never ends.
    public static let shared = ThreadPool(
        ThreadPoolWorkers("shared", defaultThreads, 65_536), isShared: true)

    /// The number of usable cores, since more threads would only share them. At least two, so one blocking job does not
    /// stop all others. At most eight, because the default is meant for occasional work next to a single loop.
    package static let defaultThreads = min(max(Int(clinux_usable_cores()), 2), 8)

    /// Creates a pool without threads.
    /// - Parameters:
    ///   - name: the name of the threads, followed by a number: "pool-1". Linux shows 15 bytes; a long name is cut
    ///     before its number.
    ///   - threads: the most threads, at least 1; by default the number of usable cores, between 2 and 8.
    ///   - queueLimit: the most jobs that wait for a thread, at least 1. The default is some 10 MB of closures; a pool
    ///     so late would not catch up with more.
    /// - Throws: `DispatchError.badInput` if a number is below 1.
    public convenience init(
        name: String = "pool", threads: Int? = nil, queueLimit: Int = 65_536
    ) throws(DispatchError) {
        try self.init(
            name: name, threads: threads ?? Self.defaultThreads, queueLimit: queueLimit, create: LibraryThread.create)
    }

    /// The public initializer with a test's thread starter.
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

    // Perhaps on one of the pool's own threads, so it does not wait for them.
    deinit { threads.closeWithoutWaiting() }

    /// Any thread. Runs `job` on one of the threads, when one is free.
    /// - Throws: `DispatchError.queueIsFull`, `.poolIsShutDown` or `.poolIsForked`; `SystemError` of `pthread_create`
    ///   if the pool has no thread and none can be started.
    public func dispatch(_ job: @escaping @Sendable () -> Void) throws { try threads.take(PoolJob(job)) }

    /// Refuses further jobs, runs the waiting ones, and returns when all threads have ended. Further calls do nothing.
    ///
    /// Blocks the calling thread, which may be any. In a job of the pool itself it returns at once, and the threads end
    /// later. Does nothing for `ThreadPool.shared`.
    @available(*, noasync, message: "it blocks its thread; release the pool, which then ends by itself")
    public func shutDown() {
        if !isShared { threads.shutDown() }
    }

    /// A pool's metrics.
    public struct Metrics: Hashable, Sendable {
        /// Started threads.
        public let threads: Int
        /// Threads running a job.
        public let busy: Int
        /// Jobs waiting for a thread.
        public let queued: Int
        /// Jobs that have run since the pool's creation.
        public let completed: Int
        package let threadLimit: Int
        /// The most waiting jobs; further ones are refused.
        package let queueLimit: Int
    }

    package var name: String { threads.name }

    package var isForked: Bool { threads.isForked }

    /// Any thread. The pool's current metrics.
    public var metrics: Metrics { threads.metrics }
}

extension Optional where Wrapped == any Dispatcher {
    /// `ThreadPool.shared`, shorter where an operator takes a dispatcher: `map(on: .shared) { … }`.
    public static var shared: (any Dispatcher)? { ThreadPool.shared }
}
