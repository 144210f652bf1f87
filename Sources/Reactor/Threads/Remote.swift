import Synchronization

extension EventLoop {
    /// This loop as other threads may use it: always the same object, until the loop has ended.
    public var remote: Remote { door ?? Remote(of: self) }

    // @unchecked: of the loop it touches only the mailbox and atomics, which are made for any thread; `ended` has a lock.
    /// A loop's door for other threads: the only part of a loop that is `Sendable`.
    ///
    /// It is an executor of Swift Concurrency too, for actors and tasks that are to run on the loop. An actor lives there, next
    /// to the promises of that thread, if it says so:
    ///
    /// ```swift
    /// actor Ledger {
    ///     private let home: EventLoop.Remote
    ///     nonisolated var unownedExecutor: UnownedSerialExecutor { home.asUnownedSerialExecutor() }
    ///     init(on home: EventLoop.Remote) { self.home = home }
    /// }
    /// ```
    ///
    /// Whoever refers to it unowned, as an actor does, must keep it. `EventLoop.main` is there for ever.
    public final class Remote: @unchecked Sendable {
        // And the loop holds its remote: a circle until the loop ends, which every loop does but the main thread's.
        let loop: EventLoop
        let ended = Latch()
        let actors: LoopActorExecutor
        /// What the thread of the loop is called, if `EventLoop.spawn` has started it.
        public let name: String?
        private var isSpawned: Bool { name != nil }

        init(of loop: EventLoop, name: String? = nil) {
            self.loop = loop
            self.name = name
            actors = LoopActorExecutor(loop)
            if loop.hasEnded { ended.open() }
        }

        /// Runs `job` on the loop, after what was submitted before by this thread. A loop that sleeps is woken, once for
        /// any number of jobs.
        /// - Returns: false if the loop has ended; the job is then released, unrun, on this thread.
        @discardableResult
        public func submit(
            _ job: @escaping @Sendable () -> Void, file: StaticString = #fileID, line: UInt = #line
        ) -> Bool {
            let isLocated = loop.keepsOrigins.load(ordering: .relaxed)
            let job = Unmanaged<Job>.passRetained(isLocated ? LocatedJob(job, CallSite(file, line)) : ClosureJob(job))
            guard !loop.post(job) else { return true }
            job.release()
            return false
        }

        /// Ends the loop's `run()` after its present turn, as `EventLoop.stop()` does on the loop's own thread. A loop of
        /// `EventLoop.spawn` is ended for good: nested runs and `hang`s come back too, and then its thread ends. What was
        /// submitted before by this thread runs first.
        /// - Returns: false if the loop has ended.
        @discardableResult
        public func stop() -> Bool {
            let job = Unmanaged<Job>.passRetained(StopJob(loop, forGood: isSpawned))
            guard !loop.post(job) else { return true }
            job.release()
            return false
        }

        /// Blocks the calling thread until the loop has ended, with all that it held; a loop of `EventLoop.spawn` ends after
        /// `stop()`. At once if this is the loop's own thread, or a forked child, where waiting for it would not end.
        ///
        /// On the thread of another loop nothing else happens there meanwhile; see `Remote.ended` of `Promises` then.
        @available(*, noasync, message: "it blocks its thread")
        public func join() {
            if EventLoop.owns(loop) || loop.isForked { return }
            loop.isOver.wait()
        }

        /// Whether the loop has ended. Any thread.
        public var hasEnded: Bool { ended.isOpen }

        /// Calls `body` when the loop has ended, on its thread, as the last thing there; at once, on this one, if it has.
        /// - Returns: what `forgetWhenEnded` takes.
        @discardableResult
        package func whenEnded(_ body: @escaping @Sendable () -> Void) -> Int { ended.whenOpen(body) }

        /// Lets go of what `whenEnded` was given, if it waits.
        package func forgetWhenEnded(_ id: Int) { ended.forget(id) }
    }
}

extension EventLoop.Remote: Hashable {
    /// Whether both are of one loop.
    public static func == (one: EventLoop.Remote, other: EventLoop.Remote) -> Bool { one.loop === other.loop }

    /// By the loop.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(loop)) }
}

extension EventLoop {
    /// Any thread: posts `job` to the loop at `address`, if `isThere` says that there is one, which must hold from the
    /// call until the loop has ended, or be false.
    package static func post(_ job: Job, toLoopAt address: UnsafeMutableRawPointer, if isThere: () -> Bool) {
        let node = Unmanaged<Job>.passRetained(job)
        let isPosted = ends.withLock { _ in
            isThere() && Unmanaged<EventLoop>.fromOpaque(address)._withUnsafeGuaranteedRef { $0.post(node) }
        }
        if !isPosted { node.release() }
    }

    // Held while a loop is used by somebody who does not own it, and while one goes.
    static let ends = Mutex(())
}

/// A request of another thread to stop.
private final class StopJob: Job {
    // The loop holds it in turn, until it runs it or ends. Touched on the loop's thread only.
    private let loop: EventLoop
    private let isForGood: Bool

    init(_ loop: EventLoop, forGood: Bool) {
        self.loop = loop
        isForGood = forGood
        super.init()
    }

    override func run() {
        loop.isStopping = isForGood
        loop.stop()
    }

    // It is no handler, and what it asks for has happened.
    override var isReportedUndelivered: Bool { false }
}
