import CLinux
import ReactorLibc

/// A `ThreadPool`'s threads and queue. Each thread retains this object, so it outlives the pool while there are jobs.
package final class ThreadPoolWorkers: Inspected, Sendable {
    private struct WorkersState: ~Copyable {
        /// All are `PoolJob`s.
        var queue = JobQueue()
        /// Queued jobs that are not withdrawn.
        var queued = 0
        var tombstones = 0
        /// All started threads, in start order. Each runs a job or takes the next.
        var handles: [LibraryThread.Handle] = []
        var busy = 0
        var completed = InspectedEnds()
        var isClosed = false
        /// True once a caller joins or has detached the threads.
        var isJoining = false
        /// Threads whose job waits for a queued job.
        var waiting: Set<UInt> = []
        var changes = 0

        var free: Int { handles.count - busy }
    }

    let name: String
    private let most: Int
    private let queueLimit: Int
    private let create: LibraryThread.Create
    private let keepsJobs: Bool
    private let fork = ForkMark()
    private let state = LockedValue(WorkersState())
    /// Signalled when a job is queued or the pool closes.
    private let hasWork = ThreadSignal()
    /// Opened when all threads have been joined.
    private let hasEnded = Latch()

    /// - Parameter keepsJobs: true to keep a job when no thread can be started, until a later `take` or
    ///   `startThreadIfNeeded` starts one.
    package init(
        _ name: String, _ most: Int, _ queueLimit: Int, _ create: @escaping LibraryThread.Create = LibraryThread.create,
        keepsJobs: Bool = false
    ) {
        self.name = name
        self.most = most
        self.queueLimit = queueLimit
        self.create = create
        self.keepsJobs = keepsJobs
        InspectedObjects.add(self, ofLoop: 0)
    }

    deinit { InspectedObjects.remove(self) }

    /// A forked child lacks the threads; one may have held the lock.
    var isForked: Bool { fork.isForked }

    // MARK: Jobs

    /// Queues a job. The caller's reference keeps a refused job alive, so none is released under the lock.
    /// - Returns: false if the job is kept without a thread.
    @discardableResult
    package func take(_ job: PoolJob) throws -> Bool {
        if isForked { throw DispatchError.poolIsForked(name: name) }
        let hasThread = try state.withLock { state in
            if state.isClosed { throw DispatchError.poolIsShutDown(name: name) }
            if state.queued >= state.free { try makeRoom(&state) }
            job.progress = .queued
            state.queue.append(.passRetained(job))
            state.queued += 1
            return !state.handles.isEmpty
        }
        hasWork.wakeOne()
        return hasThread
    }

    /// Starts a thread if none is free for a job, or checks that the queue has room.
    private func makeRoom(_ state: inout WorkersState) throws {
        if state.handles.count < most {
            let failure = start(&state)
            if failure == 0 { return }
            // The other threads continue.
            if state.handles.isEmpty && !keepsJobs { throw noThread(failure) }
        }
        guard state.queued - state.free < queueLimit else {
            throw DispatchError.queueIsFull(name: name, limit: queueLimit)
        }
    }

    /// Starts the first thread, if there is none, for a pool that keeps jobs.
    /// - Throws: the error from pthread_create(3).
    package func startThreadIfNeeded() throws(SystemError) {
        if isForked { return }
        try state.withLock { state throws(SystemError) in
            guard state.handles.isEmpty else { return }
            let failure = start(&state)
            if failure != 0 { throw noThread(failure) }
        }
    }

    private func noThread(_ failure: CInt) -> SystemError {
        SystemError(.threadCreate, failure, detail: "of the pool \"\(name)\"")
    }

    package var metrics: ThreadPool.Metrics {
        func snapshot(_ threads: Int, _ busy: Int, _ queued: Int, _ completed: Int) -> ThreadPool.Metrics {
            ThreadPool.Metrics(
                threads: threads, busy: busy, queued: queued, completed: completed, threadLimit: most,
                queueLimit: queueLimit)
        }
        if isForked { return snapshot(0, 0, 0, 0) }
        return state.withLock { snapshot($0.handles.count, $0.busy, $0.queued, $0.completed.count) }
    }

    package var facts: [InspectedFacts] {
        let now = metrics
        var facts = InspectedFacts(
            .threadPool, name, limit: now.threadLimit, inUse: now.busy, free: now.threadLimit - now.busy,
            waiting: now.queued)
        facts.ends = isForked ? nil : state.withLock { $0.completed }
        facts.identity = ObjectIdentifier(self)
        facts.others = [("threads", now.threads), ("queue limit", now.queueLimit)]
        return [facts]
    }

    // MARK: Threads

    /// Returns 0 or an errno.
    private func start(_ state: inout WorkersState) -> CInt {
        let name = LibraryThread.name(name, number: state.handles.count + 1)
        var handle = LibraryThread.noHandle
        let failure = LibraryThread.start(name, &handle, create) {
            self.work(PoolThread.begin(self))
        }
        if failure == 0 { state.handles.append(handle) }
        return failure
    }

    private func work(_ thread: PoolThread) {
        while let job = nextJob() {
            job._withUnsafeGuaranteedRef { $0.runAndRelease() }
            thread.afterJob?()
            SignalRegistry.deliverRaised()
            state.withLock {
                $0.busy -= 1
                $0.completed.add()
            }
        }
    }

    /// Waits for a job. `nil` when the pool is closed and empty.
    private func nextJob() -> Unmanaged<Job>? {
        state.wait(for: hasWork) { state -> Unmanaged<Job>?? in
            while let job = state.queue.popFirst() {
                if Self.progress(of: job) == .withdrawn {
                    // Withdrawn jobs have no body, so nothing of the program is released under the lock.
                    state.tombstones -= 1
                    job.release()
                    continue
                }
                job._withUnsafeGuaranteedRef { unsafeDowncast($0, to: PoolJob.self).progress = .taken }
                state.queued -= 1
                state.busy += 1
                return job
            }
            return state.isClosed ? .some(nil) : nil
        }
    }

    private static func progress(of job: Unmanaged<Job>) -> PoolJob.Progress {
        job._withUnsafeGuaranteedRef { unsafeDowncast($0, to: PoolJob.self).progress }
    }

    /// Withdraws a job of this pool and releases its body, unless a thread has taken it. Constant time on average.
    package func withdraw(_ job: PoolJob) {
        if isForked { return }
        // Released after the lock is free.
        let body = state.withLock { state -> (() -> Void)? in
            guard job.progress == .queued else { return nil }
            job.progress = .withdrawn
            state.queued -= 1
            state.tombstones += 1
            if state.tombstones >= 64 && state.tombstones > state.queued { Self.sweep(&state) }
            return job.body.take()
        }
        withExtendedLifetime(body) {}
    }

    private static func sweep(_ state: inout WorkersState) {
        var kept = JobQueue()
        while let job = state.queue.popFirst() {
            if progress(of: job) == .withdrawn { job.release() } else { kept.append(job) }
        }
        state.queue = kept
        state.tombstones = 0
    }

    // MARK: Jobs that wait for jobs

    /// Notes that the thread's job waits for a queued job, until `endWait`.
    /// - Returns: a number that does not change while all threads wait in this way; `nil` if one does not wait, or if
    ///   the pool may start another.
    package func beginWait(_ thread: UInt) -> Int? {
        state.withLock { state in
            if state.waiting.insert(thread).inserted { state.changes += 1 }
            return state.handles.count >= most && state.waiting.count == state.handles.count ? state.changes : nil
        }
    }

    package func endWait(_ thread: UInt) {
        state.withLock { if $0.waiting.remove(thread) != nil { $0.changes += 1 } }
    }

    // MARK: The end

    package func shutDown() {
        if isForked { return }
        close()
        // A thread of the pool must not wait for its own end.
        if PoolThread.current?.pool === self { return }
        guard let handles = takeHandles() else { return hasEnded.wait() }
        for handle in handles { pthread_join(handle, nil) }
        hasEnded.open()
    }

    /// Takes the threads, for the only caller that may join or detach them.
    private func takeHandles() -> [LibraryThread.Handle]? {
        state.withLock { state in
            defer { state.isJoining = true }
            return state.isJoining ? nil : state.handles
        }
    }

    /// Closes the pool like `shutDown`, without waiting. Called when the pool's last reference is released.
    func closeWithoutWaiting() {
        if isForked { return }
        close()
        for handle in takeHandles() ?? [] { pthread_detach(handle) }
    }

    private func close() {
        state.withLock { $0.isClosed = true }
        hasWork.wakeAll()
    }
}

/// The library's own threads for one purpose. A forked child, which lacks its parent's threads, makes new ones.
package final class LibraryWorkers: Sendable {
    private let current: LockedValue<ThreadPoolWorkers>
    private let make: @Sendable () -> ThreadPoolWorkers

    package init(_ make: @escaping @Sendable () -> ThreadPoolWorkers) {
        self.make = make
        current = .ofProcess(make())
    }

    package var ofThisProcess: ThreadPoolWorkers {
        current.withLock { workers in
            if workers.isForked { workers = make() }
            return workers
        }
    }
}

/// A pool's thread, until it ends. Used on that thread only.
package final class PoolThread {
    package let pool: ThreadPoolWorkers
    /// Called after each job. Set by a loop that a job creates on this thread.
    var afterJob: (() -> Void)?
    private var isEnding = false

    private init(_ pool: ThreadPoolWorkers) { self.pool = pool }

    /// The calling thread, if it belongs to a pool.
    package static var current: PoolThread? {
        pthread_getspecific(key).map { Unmanaged<PoolThread>.fromOpaque($0).takeUnretainedValue() }
    }

    fileprivate static func begin(_ pool: ThreadPoolWorkers) -> PoolThread {
        let thread = PoolThread(pool)
        pthread_setspecific(key, Unmanaged.passRetained(thread).toOpaque())
        return thread
    }

    // Released in the second round of the thread's end. The loop ends in the first, and values released there may ask
    // for this object.
    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        pthread_key_create(&key) { address in
            guard let address else { return }
            let thread = Unmanaged<PoolThread>.fromOpaque(address)
            if thread._withUnsafeGuaranteedRef({ $0.isEnding }) { return thread.release() }
            thread._withUnsafeGuaranteedRef { $0.isEnding = true }
            pthread_setspecific(PoolThread.key, address)
        }
        return key
    }()
}
