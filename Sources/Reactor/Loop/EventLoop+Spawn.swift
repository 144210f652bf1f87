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
    /// The loop stays alive without work. When it ends, jobs and handlers that still wait are released without being
    /// run, and reported. Other threads that wait for its results are notified.
    ///
    /// Joining the thread is optional; the thread does not keep the process alive. It blocks all signals except faults and
    /// watched ones, so `onSignal` works there, and a signal that a handler raises reaches its watches. When a signal's last
    /// watch ends, on any thread, this thread blocks the signal shortly afterwards.
    ///
    /// - Parameter name: the thread's name; Linux shows 15 bytes of it. An empty name becomes "loop".
    /// - Throws: `SystemError` from `pthread_create` or from opening the loop's descriptors; `ENOTSUP` in a simulated
    ///   network.
    public static func spawn(name: String = "loop") throws(SystemError) -> LoopRemote {
        try refuseInSimulation()
        return try spawn(name: name, syscalls: { Syscalls() }, create: LibraryThread.create)
    }

    /// A spawned loop would use real sockets.
    static func refuseInSimulation() throws(SystemError) {
        if withExisting({ $0.kernel.table.isSimulated }) == true {
            throw SystemError(.threadCreate, ENOTSUP, detail: Syscalls.simulationHasOneThread)
        }
    }

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

    /// Drives the loop until it is stopped, even without work. Returns false if the loop failed.
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
