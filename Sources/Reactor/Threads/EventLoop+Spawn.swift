import Glibc
import Synchronization

extension EventLoop {
    /// Starts a thread that drives a loop of its own, until `stop()` is called on what this answers.
    ///
    /// ```swift
    /// let worker = try EventLoop.spawn(name: "worker")
    /// worker.submit { … }
    /// worker.stop()
    /// worker.join()
    /// ```
    ///
    /// The loop stays alive when it has nothing to do. When it ends, what still waits there is let go, unrun, and reported;
    /// promises that only it would have settled are rejected with `PromiseError.loopEnded`. Nobody need join it: a
    /// thread that is still there does not keep the process from ending. Signals are not delivered to the thread, but
    /// `onSignal` works there as everywhere.
    ///
    /// - Parameter name: what the thread is called; Linux shows the first 15 bytes. An empty one is "loop".
    /// - Throws: `SystemError`, of `pthread_create`, or of the descriptors that the loop waits with.
    public static func spawn(name: String = "loop") throws(SystemError) -> Remote {
        try spawn(name: name, syscalls: { Syscalls() }, create: LibraryThread.create)
    }

    /// The same with system calls that a test has replaced.
    package static func spawn(
        name: String, syscalls: @escaping @Sendable () -> Syscalls, create: LibraryThread.Create = LibraryThread.create
    ) throws(SystemError) -> Remote {
        let name = name.isEmpty ? "loop" : name
        let start = Start()
        var handle = pthread_t()
        let failure = LibraryThread.start(name, &handle, create) {
            let loop = EventLoop(syscalls: syscalls(), name: name)
            loop.installOnThisThread()
            do throws(SystemError) {
                try loop.openWaker()
                start.succeed(loop.remote)
            } catch {
                start.fail(error)
                return
            }
            loop.driveUntilStopped()
        }
        guard failure == 0 else { throw SystemError(.threadCreate, failure, detail: "of the loop \"\(name)\"") }
        pthread_detach(handle)
        return try start.outcome.get()
    }

    /// Until somebody stops it, although nothing may be left to do. False if it could not go on.
    @discardableResult
    func driveUntilStopped() -> Bool {
        let hold = hold()
        defer { hold.release() }
        do throws(SystemError) { try run() } catch {
            LoopEvent.send(.loopFailed(remote.name ?? "", error))
            return false
        }
        return true
    }

    /// What the new thread tells the one that started it.
    private final class Start: Sendable {
        private let latch = Latch()
        private let told = Mutex<Result<Remote, SystemError>?>(nil)

        func succeed(_ remote: Remote) { tell(.success(remote)) }
        func fail(_ error: SystemError) { tell(.failure(error)) }

        private func tell(_ outcome: Result<Remote, SystemError>) {
            told.withLock { $0 = outcome }
            latch.open()
        }

        var outcome: Result<Remote, SystemError> {
            latch.wait()
            return told.withLock { $0! }
        }
    }
}
