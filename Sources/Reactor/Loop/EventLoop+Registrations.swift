import Glibc

// How a loop treats epoll registrations that cannot be made, that report false readiness, or that cannot be removed.

extension EventLoop {
    /// The time after which a deferred registration is tried again.
    private static var pause: Duration { .milliseconds(100) }

    // MARK: No room

    /// Sets `interest` without a registration if `error` is a shortage, which may be temporary. `ENOSPC` refers to
    /// `fs.epoll.max_user_watches`, a limit that all processes of the user share. Any other error is thrown.
    @inline(never)
    func deferRegistration(
        _ interest: Interest, of fd: CInt, handler: (any ReadinessHandler)?, _ error: SystemError
    ) throws(SystemError) {
        guard error.call == .epollControl, error.isShortage else { throw error }
        poller.setDeferredInterest(interest, of: fd, handler: handler)
        reportShortage(error)
        scheduleRetry()
    }

    /// Reports a shortage once in each episode. An episode ends when there was no shortage for a second.
    private func reportShortage(_ error: SystemError) {
        let (last, now) = (registrations.lastShortage, clock.now)
        registrations.lastShortage = now
        if let last, last.duration(to: now) <= .seconds(1) { return }
        LoopEvent.send(.watchPaused(error))
    }

    /// Starts one timer for all deferred registrations. It does not keep the loop alive, since the descriptors do.
    func scheduleRetry() {
        if registrations.retryTimer != nil { return }
        let deadline = now.advanced(by: Self.pause).nanoseconds
        let timer = timers.heap.insert(deadline: deadline, interval: 0, .job(RegistrationRetry(self)))
        timers.heap.setReferenced(timer, false)
        registrations.retryTimer = timer
    }

    /// Called when `fd` is forgotten.
    @inline(never)
    func forgetFailures(of fd: CInt) {
        registrations.futile[fd] = nil
        guard poller.deferred.isEmpty, let timer = registrations.retryTimer else { return }
        registrations.retryTimer = nil
        let retry = timers.heap.remove(timer)
        withExtendedLifetime(retry) {}
    }

    /// Makes the deferred registrations, as far as there is room.
    fileprivate func retryRegistrations() {
        registrations.retryTimer = nil
        let (shortage, refused) = poller.registerDeferred(kernel)
        if let shortage { reportShortage(shortage) }
        if !poller.deferred.isEmpty { scheduleRetry() }
        for (handler, ready) in refused { handler.descriptorIsReady(ready) }
    }

    // MARK: Readiness without a result

    /// Counts false readiness: `fd` was reported ready, but the system call that followed found nothing, or failed in
    /// a way that leaves `fd` unchanged.
    ///
    /// Readiness is level-triggered, so this repeats itself. After 256 times within a second without progress, `fd` is
    /// watched only every 100 ms, until there is progress. Such readiness occurs with an error queue, with a socket for
    /// which the system has no memory, and with a call that a security module or seccomp forbids.
    ///
    /// - Parameters:
    ///   - progress: any number that changes when a call for `fd` achieves something.
    ///   - error: the error of the call; reported once in each episode.
    @inline(never)
    package func noteFutileReadiness(of fd: CInt, progress: Int, _ error: @autoclosure () -> SystemError) {
        let now = clock.now
        var entry = registrations.futile[fd] ?? FutileReadiness(progress: progress, since: now)
        if entry.progress != progress || entry.since.duration(to: now) > .seconds(1) {
            entry = FutileReadiness(progress: progress, since: now)
        }
        entry.count += 1
        let isPaused = entry.count >= FutileReadiness.limit
        if isPaused { entry.since = now }
        registrations.futile[fd] = entry
        guard isPaused else { return }
        poller.suspend(fd, kernel)
        scheduleRetry()
        if entry.count == FutileReadiness.limit { LoopEvent.send(.watchPaused(error())) }
    }

    // MARK: Registrations out of reach

    /// Whether the descriptor that was registered as `fd` has since been closed.
    func isStale(_ fd: CInt) -> Bool { !isForked && poller.isStale(fd, kernel) }

    /// Ends the reports of a registration that is not in the poller's table. The kernel would continue to report it, so
    /// that the loop would never wait again.
    @inline(never)
    func endStray() {
        let fd = poller.provenStray
        poller.provenStray = -1
        do throws(SystemError) {
            _ = try poller.removeStray(fd, kernel).orThrow(.epollControl, "descriptor \(fd)")
            return
        } catch { if error.isShortage { reportShortage(error) } else { reportStray(fd, nil) } }
        // A loop that embeds this one has registered its epoll descriptor, which therefore must not change.
        guard !waker.isEmbedded, meter.counters.turns >= registrations.turnOfNextRebuild, rebuildPoller() else {
            // The kernel continues to report it: the loop wakes for nothing, but seldom.
            usleep(1000)
            return
        }
    }

    /// Moves to an epoll descriptor with only the registrations of the poller's table.
    /// - Returns: false if there is no room for one; the loop tries again after some turns.
    private func rebuildPoller() -> Bool {
        var own: [(source: Poller.Source, fd: CInt)] = []
        if hasWaker { own.append((.mailbox, shared.waker.descriptor.load(ordering: .relaxed))) }
        if timers.descriptor >= 0 { own.append((.timer, timers.descriptor)) }
        if let slot = signals.slot { own.append((.signals, slot.descriptor.load(ordering: .relaxed))) }
        if mainActor.watchesQueue, let queue = try? mainActorQueue() { own.append((.mainActor, queue)) }
        let isRebuilt = poller.rebuild(own, kernel)
        if !isRebuilt { registrations.turnOfNextRebuild = meter.counters.turns + 1024 }
        if !poller.deferred.isEmpty { scheduleRetry() }
        return isRebuilt
    }

    /// Reports only the first stray of a loop: a program that makes this mistake once may make it often.
    func reportStray(_ fd: CInt, _ origin: CallSite?) {
        if registrations.hasReportedStray { return }
        registrations.hasReportedStray = true
        LoopEvent.send(.staleWatch(fd, origin))
    }
}

/// The job of the timer that ends the pause.
private final class RegistrationRetry: Job {
    // The loop retains the job, and releases it when the loop ends.
    private unowned let loop: EventLoop

    init(_ loop: EventLoop) {
        self.loop = loop
        super.init()
    }

    override func run() { loop.retryRegistrations() }

    override var isReportedUndelivered: Bool { false }
}
