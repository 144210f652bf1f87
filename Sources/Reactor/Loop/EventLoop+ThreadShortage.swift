import ReactorLibc

// What a loop does about jobs for the library's own threads when none can be started. Swift's pool, in the same
// situation, sleeps on the thread that has the job, which may be the loop's.

extension LoopRemote {
    /// Any thread: as for the loop.
    package func startThreadLater(of workers: ThreadPoolWorkers) { loop.startThreadLater(of: workers) }
}

extension EventLoop {
    /// The time between two tries.
    private static var pause: Duration { .milliseconds(100) }

    /// Any thread: makes this loop, which counts the jobs that `workers` keep as external work, start a thread for them
    /// as soon as one can be started. Reported once per shortage.
    func startThreadLater(of workers: ThreadPoolWorkers) {
        let job = Unmanaged<Job>.passRetained(
            InternalJob { [self] in
                if poolsWithoutThread.contains(where: { $0 === workers }) { return }
                poolsWithoutThread.append(workers)
                startThread(of: workers) { LoopEvent.send(.threadShortage($0)) }
            })
        if !post(job) { job.release() }
    }

    private func startThread(of workers: ThreadPoolWorkers, orElse report: (SystemError) -> Void) {
        do throws(SystemError) { try workers.startThreadIfNeeded() } catch {
            report(error)
            return retryStart(of: workers)
        }
        poolsWithoutThread.removeAll { $0 === workers }
    }

    private func retryStart(of workers: ThreadPoolWorkers) {
        // The loop retains the job, and releases it when the loop ends.
        let retry = InternalJob { [unowned self] in startThread(of: workers) { _ in } }
        if clock.isVirtual {
            // The clock stands still until the jobs have run, and so would a timer.
            usleep(UInt32(Self.pause.clampedNanoseconds / 1000))
            return enqueue(retry)
        }
        let deadline = now.advanced(by: Self.pause).nanoseconds
        timers.setReferenced(timers.insert(deadline: deadline, interval: 0, .job(retry)), false)
    }
}
