import Synchronization

// @unchecked: it touches only the loop's mailbox and atomics, which are made for any thread.
/// A reference to a loop for other threads: the only part of a loop that is `Sendable`.
///
/// A remote is also an executor of Swift Concurrency, for actors and tasks that should run on the loop. An actor whose
/// executor is the remote lives there, next to the handlers of that thread:
///
/// ```swift
/// actor Ledger {
///     private let home: LoopRemote
///     nonisolated var unownedExecutor: UnownedSerialExecutor { home.asUnownedSerialExecutor() }
///     init(on home: LoopRemote) { self.home = home }
/// }
/// ```
///
/// An object that refers to the remote unowned, as an actor does, must also retain it. `EventLoop.main` lives
/// forever.
public final class LoopRemote: @unchecked Sendable {
    // The loop retains its remote too. The cycle ends with the loop; only the main thread's loop never ends.
    let loop: EventLoop
    let actors: LoopActorExecutor
    /// The name of the loop's thread, if `EventLoop.spawn` has started it.
    public let name: String?

    init(of loop: EventLoop, name: String? = nil) {
        self.loop = loop
        self.name = name
        actors = LoopActorExecutor(loop)
    }

    /// Runs `job` on the loop, after the jobs that this thread has submitted before. A sleeping loop is woken, once
    /// for any number of jobs.
    ///
    /// ```swift
    /// let remote = EventLoop.current.remote         // Sendable
    /// library.onProgress { percent in                // on a thread of the library
    ///     remote.submit { print("\(percent) %") }    // on the loop's thread
    /// }
    /// ```
    ///
    /// - Parameter job: called at most once, on the loop's thread.
    /// - Returns: false if the loop has ended; the job is then released on this thread without being run.
    @discardableResult
    public func submit(
        _ job: @escaping @Sendable () -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Bool { post(ClosureJob(job, CallSite(file, line))) }

    /// As `submit`, for a job of another class. It must be in no queue.
    /// - Returns: false if the loop has ended.
    package func post(_ job: Job) -> Bool { loop.post(job) }

    /// Ends the loop's `run()` after its current turn, as `EventLoop.stop()` does on the loop's own thread. Jobs
    /// that this thread has submitted before run first.
    ///
    /// A loop made by `EventLoop.spawn` ends for good: nested runs and `hang`s return too, and then its thread ends.
    /// - Returns: false if the loop has ended.
    @discardableResult
    public func stop() -> Bool {
        // The loop retains the job until it runs the job or ends, and either fulfils the request.
        let stop = InternalJob { [loop] in
            if loop.isSpawned { loop.shared.life.advance(to: .stopping) }
            loop.stop()
        }
        return post(stop)
    }

    /// Blocks the calling thread until the loop has ended and released everything it held. A loop of
    /// `EventLoop.spawn` ends after `stop()`.
    ///
    /// Returns at once on the loop's own thread and in a forked child, where the wait would never end. On the
    /// thread of another loop, that loop stands still meanwhile.
    @available(*, noasync, message: "it blocks its thread")
    public func join() {
        if loop.isOwnedByThisThread || loop.isForked { return }
        loop.shared.life.isOver.wait()
    }

    /// `true` once the loop has ended. Any thread.
    public var hasEnded: Bool { loop.shared.life.ended.isOpen }

    /// Calls `body` on the loop's thread when the loop has ended, as the last step there. If the loop has ended
    /// already, calls it at once on the calling thread.
    /// - Returns: an identifier for `forgetWhenEnded`.
    @discardableResult
    package func whenEnded(_ body: @escaping @Sendable () -> Void) -> Int { loop.shared.life.ended.whenOpen(body) }

    /// The number of waiting bodies, for tests.
    package var waitersForEnd: Int { loop.shared.life.ended.count }

    /// Releases a body that was passed to `whenEnded`, if it still waits.
    /// - Returns: true if it did.
    @discardableResult
    package func forgetWhenEnded(_ id: Int) -> Bool { loop.shared.life.ended.forget(id) }
}

extension EventLoop {
    /// The `Sendable` reference to this loop for other threads. It is the same object each time, until the loop has
    /// ended.
    public var remote: LoopRemote { ownRemote ?? LoopRemote(of: self) }
}

extension LoopRemote: Hashable {
    /// `true` if both are remotes of one loop.
    public static func == (one: LoopRemote, other: LoopRemote) -> Bool { one.loop === other.loop }

    /// Hashes the identity of the loop.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(loop)) }
}

extension LoopRemote: Dispatcher {
    /// Runs `job` on the loop like `submit`; always as a separate job, even when called on the loop's thread.
    /// - Throws: `DispatchError.loopEnded`. A loop that ends with the job still queued releases it.
    public func dispatch(_ job: @escaping @Sendable () -> Void) throws(DispatchError) {
        guard submit(job) else { throw .loopEnded }
    }
}
