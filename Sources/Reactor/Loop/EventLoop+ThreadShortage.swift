import ReactorLibc

// Starts library threads later if none can be started now. (Swift's pool would sleep on the job's thread, perhaps the
// loop's.)

extension LoopRemote {
    /// Any thread.
    package func startThreadLater(of workers: ThreadPoolWorkers) { loop.startThreadLater(of: workers) }
}

extension EventLoop {
    private static var pause: Duration { .milliseconds(100) }

    /// Makes this loop start a thread for `workers` as soon as possible, and reports the shortage once. The loop counts
    /// the kept jobs as external work. Any thread.
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
        // The loop retains the job until the loop ends.
        let retry = InternalJob { [unowned self] in startThread(of: workers) { _ in } }
        if clock.isVirtual {
            // The clock and its timers stand still until the jobs have run.
            usleep(UInt32(Self.pause.clampedNanoseconds / 1000))
            return enqueue(retry)
        }
        let deadline = now.advanced(by: Self.pause).nanoseconds
        timers.setReferenced(timers.insert(deadline: deadline, interval: 0, .job(retry)), false)
    }
}
