import Synchronization

// @unchecked: the remote touches only the loop's mailbox and atomics, which any thread may use.
/// A loop's `Sendable` reference for other threads.
///
/// A remote is also an executor for Swift Concurrency. An actor whose executor is the remote lives on the loop, next to
/// that thread's handlers:
///
/// ```swift
/// actor Ledger {
///     private let home: LoopRemote
///     nonisolated var unownedExecutor: UnownedSerialExecutor { home.asUnownedSerialExecutor() }
///     init(on home: LoopRemote) { self.home = home }
/// }
/// ```
///
/// An object with an unowned reference to the remote, such as this actor's executor, must also retain the remote.
/// `EventLoop.main` lives forever.
public final class LoopRemote: @unchecked Sendable {
    // The loop also retains its remote, until the loop ends. Only the main thread's loop never ends.
    let loop: EventLoop
    let actors: LoopActorExecutor
    /// The name of the thread, if `EventLoop.spawn` started it.
    public let name: String?

    init(of loop: EventLoop, name: String? = nil) {
        self.loop = loop
        self.name = name
        actors = LoopActorExecutor(loop)
    }

    /// Runs `job` on the loop, after the jobs that this thread submitted earlier. A sleeping loop is woken once for any
    /// number of jobs.
    ///
    /// ```swift
    /// let remote = EventLoop.current.remote         // Sendable
    /// library.onProgress { percent in                // on a thread of the library
    ///     remote.submit { print("\(percent) %") }    // on the loop's thread
    /// }
    /// ```
    ///
    /// - Parameter job: called at most once, on the loop's thread.
    /// - Returns: false if the loop has ended; the job is then released on this thread uncalled.
    @discardableResult
    public func submit(
        _ job: @escaping @Sendable () -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Bool { post(ClosureJob(job, CallSite(file, line))) }

    /// `job` must be in no queue. Returns false if the loop has ended.
    package func post(_ job: Job) -> Bool { loop.post(job) }

    /// Ends the loop's `run()` after its current turn, like `EventLoop.stop()`. Jobs that this thread submitted earlier
    /// run first.
    ///
    /// A loop that `EventLoop.spawn` started ends for good: nested runs and `hang`s return too, then its thread ends.
    /// - Returns: false if the loop has ended.
    @discardableResult
    public func stop() -> Bool {
        // The loop retains the job until the job runs or the loop ends. Both fulfil the request.
        let stop = InternalJob { [loop] in
            if loop.isSpawned { loop.shared.life.advance(to: .stopping) }
            loop.stop()
        }
        return post(stop)
    }

    /// Blocks the calling thread until the loop has ended and released everything. A loop that `EventLoop.spawn`
    /// started ends after `stop()`.
    ///
    /// Returns at once on the loop's own thread and in a forked child, where it would wait forever. If the calling
    /// thread has a loop, that loop stands still meanwhile.
    @available(*, noasync, message: "it blocks its thread")
    public func join() {
        if loop.isOwnedByThisThread || loop.isForked { return }
        loop.shared.life.isOver.wait()
    }

    /// True once the loop has ended. Any thread.
    public var hasEnded: Bool { loop.shared.life.ended.isOpen }

    /// Calls `body` on the loop's thread as the last step of its end, or at once on the calling thread if the loop has
    /// ended.
    /// - Returns: an identifier for `forgetWhenEnded`.
    @discardableResult
    package func whenEnded(_ body: @escaping @Sendable () -> Void) -> Int { loop.shared.life.ended.whenOpen(body) }

    /// For tests.
    package var waitersForEnd: Int { loop.shared.life.ended.count }

    /// - Returns: true if the body was waiting.
    @discardableResult
    package func forgetWhenEnded(_ id: Int) -> Bool { loop.shared.life.ended.forget(id) }
}

extension EventLoop {
    /// The loop's `Sendable` reference for other threads, the same object each time until the loop ends.
    public var remote: LoopRemote { ownRemote ?? LoopRemote(of: self) }
}

extension LoopRemote: Hashable {
    /// Returns true if both belong to one loop.
    public static func == (one: LoopRemote, other: LoopRemote) -> Bool { one.loop === other.loop }

    /// Hashes the loop's identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(loop)) }
}

extension LoopRemote: Dispatcher {
    /// Runs `job` on the loop like `submit`, always as a separate job, even on the loop's thread.
    /// - Throws: `DispatchError.loopEnded`. A loop that ends first releases a queued job.
    public func dispatch(_ job: @escaping @Sendable () -> Void) throws(DispatchError) {
        guard submit(job) else { throw .loopEnded }
    }
}
