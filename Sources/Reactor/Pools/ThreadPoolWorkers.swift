import CLinux
import Glibc

/// The threads of a `ThreadPool` and their queue of jobs. Each thread retains this object, which therefore outlives the
/// pool as long as there are jobs.
// @unchecked: `state` is accessed only under the lock; lock and conditions are made for any thread.
package final class ThreadPoolWorkers: @unchecked Sendable {
    private struct WorkersState: ~Copyable {
        var queue = JobQueue()
        var queued = 0
        /// All started threads, in start order. Each of them is running a job, or takes the next one.
        var handles: [LibraryThread.Handle] = []
        var busy = 0
        var completed = 0
        var isClosed = false
        var joining = Joining.none
        /// The threads that wait for a job in the queue.
        var waiting: Set<UInt> = []
        /// The number of changes of `waiting`.
        var changes = 0

        /// The number of idle threads.
        var free: Int { handles.count - busy }
    }

    private enum Joining { case none, underWay, done }

    let name: String
    private let most: Int
    private let queueLimit: Int
    private let create: LibraryThread.Create
    private let keepsJobs: Bool
    private let fork = ForkMark()
    private var state = WorkersState()

    // Allocated, since their addresses must not change; freed in deinit.
    private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    /// Signalled when a job has been queued or the pool is closed.
    private let hasWork = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    /// Signalled when all threads have been joined.
    private let hasEnded = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    /// - Parameter keepsJobs: whether a job stays in the queue although there is no thread and none can be started. It
    ///   runs after a later `take` or `startThreadIfNeeded` has started one.
    package init(
        _ name: String, _ most: Int, _ queueLimit: Int, _ create: @escaping LibraryThread.Create = LibraryThread.create,
        keepsJobs: Bool = false
    ) {
        self.name = name
        self.most = most
        self.queueLimit = queueLimit
        self.create = create
        self.keepsJobs = keepsJobs
        pthread_mutex_init(lock, nil)
        pthread_cond_init(hasWork, nil)
        pthread_cond_init(hasEnded, nil)
    }

    deinit {
        pthread_cond_destroy(hasEnded)
        pthread_cond_destroy(hasWork)
        pthread_mutex_destroy(lock)
        hasEnded.deallocate()
        hasWork.deallocate()
        lock.deallocate()
    }

    /// A forked child has none of the threads, and one of them may have held the lock.
    var isForked: Bool { fork.isForked }

    private func withLock<Value>(_ body: (inout WorkersState) throws -> Value) rethrows -> Value {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        return try body(&state)
    }

    // MARK: Jobs

    /// Queues a job. The caller's reference keeps the job alive if it is refused, so that it is never released under
    /// the lock.
    package func take(_ job: Job) throws {
        if isForked { throw DispatchError.poolIsForked(name: name) }
        try withLock { state in
            if state.isClosed { throw DispatchError.poolIsShutDown(name: name) }
            if state.queued >= state.free { try makeRoom(&state) }
            state.queue.append(.passRetained(job))
            state.queued += 1
        }
        pthread_cond_signal(hasWork)
    }

    /// For a job that no thread is free for: starts a thread, or checks that the queue has room.
    private func makeRoom(_ state: inout WorkersState) throws {
        if state.handles.count < most {
            let failure = start(&state)
            if failure == 0 { return }
            // If there are other threads, the pool continues with those.
            if state.handles.isEmpty && !keepsJobs {
                throw SystemError(.threadCreate, failure, detail: "of the pool \"\(name)\"")
            }
        }
        guard state.queued - state.free < queueLimit else {
            throw DispatchError.queueIsFull(name: name, limit: queueLimit)
        }
    }

    /// For a pool that keeps jobs: starts a thread if there are jobs and no thread.
    /// - Returns: false if no thread can be started.
    package func startThreadIfNeeded() -> Bool {
        if isForked { return true }
        return withLock { $0.queued == 0 || !$0.handles.isEmpty || start(&$0) == 0 }
    }

    package var metrics: ThreadPool.Metrics {
        func snapshot(_ threads: Int, _ busy: Int, _ queued: Int, _ completed: Int) -> ThreadPool.Metrics {
            ThreadPool.Metrics(
                threads: threads, busy: busy, queued: queued, completed: completed, threadLimit: most,
                queueLimit: queueLimit)
        }
        if isForked { return snapshot(0, 0, 0, 0) }
        return withLock { snapshot($0.handles.count, $0.busy, $0.queued, $0.completed) }
    }

    // MARK: Threads

    /// Starts one more thread. Returns 0 or an errno.
    private func start(_ state: inout WorkersState) -> CInt {
        let name = LibraryThread.name(name, number: state.handles.count + 1)
        var handle = LibraryThread.noHandle
        let failure = LibraryThread.start(name, &handle, create) {
            pthread_setspecific(PoolThread.key, Unmanaged.passUnretained(self).toOpaque())
            self.work()
        }
        if failure == 0 { state.handles.append(handle) }
        return failure
    }

    fileprivate func work() {
        var takenSignals: UInt64 = 0
        pthread_mutex_lock(lock)
        while true {
            while state.queued == 0 && !state.isClosed { pthread_cond_wait(hasWork, lock) }
            guard let job = state.queue.popFirst() else { break }
            state.queued -= 1
            state.busy += 1
            pthread_mutex_unlock(lock)
            job._withUnsafeGuaranteedRef { $0.runAndRelease() }
            ThreadLoop.endJob()
            SignalRegistry.unblockWatched(&takenSignals)
            pthread_mutex_lock(lock)
            state.busy -= 1
            state.completed += 1
        }
        pthread_mutex_unlock(lock)
    }

    // MARK: Jobs that wait for jobs

    /// Records, until `endWait`, that the job of a thread waits for another one in the queue.
    /// - Returns: a number that stays the same as long as all threads wait like this; `nil` if one of them does not, or
    ///   the pool may start another one.
    package func beginWait(_ thread: UInt) -> Int? {
        withLock { state in
            if state.waiting.insert(thread).inserted { state.changes += 1 }
            return state.handles.count >= most && state.waiting.count == state.handles.count ? state.changes : nil
        }
    }

    package func endWait(_ thread: UInt) {
        withLock { if $0.waiting.remove(thread) != nil { $0.changes += 1 } }
    }

    // MARK: The end

    package func shutDown() {
        if isForked { return }
        close()
        // A thread of the pool must not wait for its own end.
        if pthread_getspecific(PoolThread.key) == Unmanaged.passUnretained(self).toOpaque() { return }
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        while state.joining == .underWay { pthread_cond_wait(hasEnded, lock) }
        guard state.joining == .none else { return }
        state.joining = .underWay
        let handles = state.handles
        pthread_mutex_unlock(lock)
        for handle in handles { pthread_join(handle, nil) }
        pthread_mutex_lock(lock)
        state.joining = .done
        pthread_cond_broadcast(hasEnded)
    }

    /// Called when the last reference to the pool is released: closes the pool as `shutDown` does, but does not wait.
    func closeWithoutWaiting() {
        if isForked { return }
        close()
        withLock { state in
            guard state.joining == .none else { return }
            state.joining = .done
            for handle in state.handles { pthread_detach(handle) }
        }
    }

    private func close() {
        withLock { $0.isClosed = true }
        pthread_cond_broadcast(hasWork)
    }
}

/// Marks the threads that belong to a `ThreadPool`, by the address of the pool that they work for.
enum PoolThread {
    static var isCurrent: Bool { pthread_getspecific(key) != nil }

    static let key: pthread_key_t = {
        var key = pthread_key_t()
        pthread_key_create(&key, nil)
        return key
    }()
}

extension EventLoop {
    /// The pool that the loop's thread belongs to; `nil` for a loop that a job has made with `withLoop`.
    package var poolOfThread: ThreadPoolWorkers? {
        guard unrunWork?.isOfPool == true, let pool = pthread_getspecific(PoolThread.key) else { return nil }
        // Sound: a pool's thread sets the key to its pool, which it retains.
        return Unmanaged<ThreadPoolWorkers>.fromOpaque(pool).takeUnretainedValue()
    }
}
