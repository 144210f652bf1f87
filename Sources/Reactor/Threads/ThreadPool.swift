import CLinux

/// A few threads for work that would hold a loop: computations of some length, calls that block.
///
/// ```swift
/// image.map(on: ThreadPool.shared) { try resize($0) }.done { show($0) }
/// ```
///
/// Jobs begin in the order in which they came, each on one thread. Threads are started one by one, when a job comes and
/// none is free, and then stay. They bear the pool's name and a number. Signals are not delivered to them: they block all, and a child process
/// that a job starts by means of its own inherits that. A pool
/// that nobody refers to any more runs what it has, and ends.
///
/// A job that blocks until another of the same pool has run may wait for ever: there may be no thread left for that one.
///
/// Nobody drives the loop of a pool's thread. Once a job has returned, what is ready on that loop is run; handlers, timers
/// and watches that still wait on it are let go then, unrun, and reported, as at the end of a thread. So within a job
/// attach handlers with `on:`, or only to promises that have settled; or `hang`, which holds the thread.
public final class ThreadPool: Dispatcher {
    private let threads: ThreadPoolWorkers
    private let isShared: Bool

    /// A pool for whoever has no reason to make one of their own: of the default size, named "shared". It does not end.
    public static let shared = ThreadPool(
        ThreadPoolWorkers("shared", defaultThreads, defaultQueueLimit), isShared: true)

    /// As many threads as there are cores that the process may use: more would only share them. Two at least, so that one job
    /// that blocks does not stop all others; eight at most, since a pool of the default size is for odd jobs beside a
    /// loop, which by itself gives them out and takes their results.
    public static let defaultThreads = min(max(Int(clinux_usable_cores()), 2), 8)

    /// 65,536 jobs: some 10 MB of closures that wait. A pool that is so far behind would not catch up with more.
    public static var defaultQueueLimit: Int { 65_536 }

    /// A pool without threads as yet.
    /// - Parameters:
    ///   - name: what its threads are called, followed by a number: "pool-1". Linux shows 15 bytes; the name is cut so that
    ///     the number remains.
    ///   - threads: how many there may be; 1 at least.
    ///   - queueLimit: how many jobs may wait that no thread is free for; 1 at least.
    /// - Throws: `DispatchError.badInput`.
    public convenience init(
        name: String = "pool", threads: Int = ThreadPool.defaultThreads,
        queueLimit: Int = ThreadPool.defaultQueueLimit
    ) throws(DispatchError) {
        try self.init(name: name, threads: threads, queueLimit: queueLimit, create: LibraryThread.create)
    }

    /// The same with a way of starting threads that a test has replaced.
    package convenience init(
        name: String, threads: Int, queueLimit: Int, create: @escaping LibraryThread.Create
    ) throws(DispatchError) {
        if threads < 1 { throw .badInput("ThreadPool(threads: \(threads)): there must be 1 at least") }
        if queueLimit < 1 { throw .badInput("ThreadPool(queueLimit: \(queueLimit)): it must be 1 at least") }
        self.init(ThreadPoolWorkers(name, threads, queueLimit, create), isShared: false)
    }

    private init(_ threads: ThreadPoolWorkers, isShared: Bool) {
        self.threads = threads
        self.isShared = isShared
    }

    // Perhaps on one of the pool's own threads, so it does not wait for them.
    deinit { threads.letGo() }

    /// Runs `job` on one of the threads, when one is free. Any thread.
    /// - Throws: `DispatchError.queueIsFull`, `.poolIsShutDown`, `.poolIsForked`; `SystemError` of `pthread_create` if there
    ///   is no thread at all and none can be started.
    public func dispatch(_ job: @escaping @Sendable () -> Void) throws { try threads.take(ClosureJob(job)) }

    /// Takes no more jobs, runs those that wait, and ends the threads; returns when all have ended. Again: nothing happens.
    ///
    /// Blocks its thread, which may be any. Called by a job of the pool itself it returns at once, and the threads end
    /// later. `ThreadPool.shared` does not end: there it does nothing.
    @available(*, noasync, message: "it blocks its thread; let go of the pool, which then ends by itself")
    public func shutDown() {
        if !isShared { threads.shutDown() }
    }

    /// What a pool does and has done.
    public struct Metrics: Hashable, Sendable {
        /// Threads that have been started.
        public let threads: Int
        /// Those that run a job at the moment.
        public let busy: Int
        /// Jobs that wait.
        public let queued: Int
        /// Jobs that have run.
        public let completed: Int
        /// How many threads there may be.
        public let threadLimit: Int
        /// How many jobs may wait; the next is refused.
        public let queueLimit: Int
    }

    /// The figures of one moment. Any thread.
    public var metrics: Metrics { threads.metrics }
}

extension Optional where Wrapped == any Dispatcher {
    /// `ThreadPool.shared`, for short where an operator asks for a dispatcher: `map(on: .shared) { … }`.
    public static var shared: (any Dispatcher)? { ThreadPool.shared }
}
