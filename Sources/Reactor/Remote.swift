import Synchronization

extension EventLoop {
    /// This loop as other threads may use it.
    public var remote: Remote { Remote(loop: self) }

    // @unchecked: of the loop it touches only the mailbox and atomics, which are made for any thread.
    /// A loop's door for other threads: the only part of a loop that is `Sendable`.
    public struct Remote: @unchecked Sendable {
        let loop: EventLoop

        /// Runs `job` on the loop, after what was submitted before by this thread. A loop that sleeps is woken, once for
        /// any number of jobs.
        /// - Returns: false if the loop has ended; the job is then released, unrun, on this thread.
        @discardableResult
        public func submit(
            _ job: @escaping @Sendable () -> Void, file: StaticString = #fileID, line: UInt = #line
        ) -> Bool {
            let isLocated = loop.keepsOrigins.load(ordering: .relaxed)
            let job = Unmanaged<Job>.passRetained(isLocated ? LocatedJob(job, Origin(file, line)) : ClosureJob(job))
            guard !loop.post(job) else { return true }
            job.release()
            return false
        }

        /// Ends the loop's `run()` after its present turn, as `EventLoop.stop()` does on the loop's own thread.
        /// - Returns: false if the loop has ended.
        @discardableResult
        public func stop() -> Bool {
            // The loop object is only used once the job runs, on the loop's thread.
            nonisolated(unsafe) let loop = loop
            return submit { loop.stop() }
        }
    }
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
