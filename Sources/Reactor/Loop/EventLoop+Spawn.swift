import CLinux
import ReactorLibc

extension EventLoop {
    /// Starts a thread that drives a new loop until `stop()` is called on the returned remote.
    ///
    /// ```swift
    /// let worker = try EventLoop.spawn(name: "worker")
    /// worker.submit { … }
    /// worker.stop()
    /// worker.join()
    /// ```
    ///
    /// The loop stays alive when it has nothing to do. When it ends, jobs and handlers that still wait there are
    /// released without being run, and reported; other threads that wait for its results are notified.
    ///
    /// Joining the thread is optional: a thread that is still running does not keep the process from ending. The thread
    /// blocks all signals except watched ones: `onSignal` works there as on any other loop, and a signal that a handler
    /// raises reaches its watches. When the last watch of a signal ends, anywhere, the thread blocks it a moment later.
    ///
    /// - Parameter name: the name of the thread, of which Linux shows the first 15 bytes. An empty name is replaced by
    ///   "loop".
    /// - Throws: `SystemError` of `pthread_create`, or of opening the loop's descriptors; `ENOTSUP` in a simulated
    ///   network.
    public static func spawn(name: String = "loop") throws(SystemError) -> LoopRemote {
        try refuseInSimulation()
        return try spawn(name: name, syscalls: { Syscalls() }, create: LibraryThread.create)
    }

    /// The loop of another thread has the sockets of the real kernel.
    static func refuseInSimulation() throws(SystemError) {
        if withExisting({ $0.kernel.table.isSimulated }) == true {
            throw SystemError(.threadCreate, ENOTSUP, detail: Syscalls.simulationHasOneThread)
        }
    }

    /// As `spawn(name:)`, with system calls that a test has replaced.
    package static func spawn(
        name: String, syscalls: @escaping @Sendable () -> Syscalls, create: LibraryThread.Create = LibraryThread.create
    ) throws(SystemError) -> LoopRemote {
        let name = name.isEmpty ? "loop" : name
        let hasStarted = ThreadSignal()
        let start = LockedValue<Result<LoopRemote, SystemError>?>(nil)
        var handle = LibraryThread.noHandle
        let failure = LibraryThread.start(name, &handle, create) {
            let loop = EventLoop(syscalls: syscalls(), name: name)
            ThreadLoop.install(loop)
            let result = Result { () throws(SystemError) in
                try loop.openDescriptors()
                return loop.remote
            }
            start.withLock { $0 = result }
            hasStarted.wakeAll()
            if case .success = result { loop.driveUntilStopped() }
        }
        guard failure == 0 else { throw SystemError(.threadCreate, failure, detail: "of the loop \"\(name)\"") }
        pthread_detach(handle)
        return try start.wait(for: hasStarted) { $0 }.get()
    }

    /// Drives the loop until it is stopped, even when it has nothing left to do. Returns false if the loop failed.
    @discardableResult
    func driveUntilStopped() -> Bool {
        let hold = keepAlive.holds.add(CallSite(#fileID, #line))
        defer { _ = keepAlive.holds.remove(hold) }
        do throws(SystemError) { try run() } catch {
            LoopEvent.send(.loopFailed(remote.name ?? "", error))
            return false
        }
        return true
    }
}
