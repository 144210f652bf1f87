import ReactorLibc

// Registrations that cannot be made or removed, or that report spurious readiness.

extension EventLoop {
    private static var pause: Duration { .milliseconds(100) }

    /// Stores `interest` without a registration if `error` is a shortage; throws any other error. `ENOSPC` means
    /// `fs.epoll.max_user_watches`, which all processes of the user share.
    @inline(never)
    func deferRegistration(
        _ interest: Interest, of fd: CInt, handler: (any ReadinessHandler)?, _ error: SystemError
    ) throws(SystemError) {
        guard error.call == .epollControl, error.isShortage else { throw error }
        let before = poller.setDeferredInterest(interest, of: fd, handler: handler)
        reportShortage(error)
        scheduleRetry()
        withExtendedLifetime(before) {}
    }

    private func reportShortage(_ error: SystemError) {
        if registrationFailures.noteShortage(at: clock.now) { LoopEvent.send(.watchPaused(error)) }
    }

    /// Reports that the loop has no descriptors, and sleeps briefly. Turns still run jobs, posted jobs and due timers.
    package func waitForDescriptors(_ error: SystemError) {
        reportShortage(error)
        usleep(10_000)
    }

    /// Starts one timer for all deferred registrations. The registrations themselves keep the loop alive.
    func scheduleRetry() {
        if registrationFailures.retryTimer != nil { return }
        let deadline = now.advanced(by: Self.pause).nanoseconds
        // The loop retains the job until the loop ends.
        let retry = InternalJob { [unowned self] in retryRegistrations() }
        let timer = timers.insert(deadline: deadline, interval: 0, .job(retry))
        timers.setReferenced(timer, false)
        registrationFailures.retryTimer = timer
    }

    @inline(never)
    func forgetFailures(of fd: CInt) {
        registrationFailures.forget(fd)
        guard poller.deferred.isEmpty, let timer = registrationFailures.retryTimer.take() else { return }
        let retry = timers.remove(timer)
        withExtendedLifetime(retry) {}
    }

    fileprivate func retryRegistrations() {
        registrationFailures.retryTimer = nil
        // Without an epoll descriptor, each registration would fail as if its descriptor were closed.
        do throws(SystemError) { try openDescriptors() } catch { return scheduleRetry() }
        let (shortage, refused) = poller.registerDeferred(kernel)
        if let shortage { reportShortage(shortage) }
        if !poller.deferred.isEmpty { scheduleRetry() }
        for (handler, ready, fd) in refused { call(handler, ready, fd) }
    }

    /// Counts spurious readiness: the system call found nothing, or failed in a way that leaves `fd` unchanged.
    ///
    /// Readiness repeats, since it is level-triggered. After 256 times within one second without progress, `fd` is
    /// watched only every 100 ms until there is progress. Causes are an error queue, a socket without kernel memory, or
    /// a call that a security module or seccomp forbids.
    ///
    /// - Parameters:
    ///   - progress: any number that changes with each successful call for `fd`.
    ///   - error: the call's error, reported once per episode.
    @inline(never)
    package func noteSpuriousReadiness(of fd: CInt, progress: Int, _ error: @autoclosure () -> SystemError) {
        let (isPaused, isReported) = registrationFailures.noteSpuriousReadiness(
            of: fd, progress: progress, at: clock.now)
        guard isPaused else { return }
        poller.suspend(fd, kernel)
        scheduleRetry()
        if isReported { LoopEvent.send(.watchPaused(error())) }
    }

    /// True when the descriptor registered as `fd` has since been closed.
    func isStale(_ fd: CInt) -> Bool { !isForked && poller.isStale(fd, kernel) }

    /// Returns the handler that waits for `fd`. If the descriptor was closed, and perhaps reopened, forgets and reports
    /// the handler instead.
    func livingHandler(of fd: CInt) -> (any ReadinessHandler)? {
        guard let present = poller.handler(of: fd) else { return nil }
        // Not registered, so the descriptor may have a new owner.
        guard isStale(fd) else { return present is WatchGroup || poller.hasRegistration(of: fd) ? present : nil }
        if let group = present as? WatchGroup {
            group.end(on: self)
        } else {
            reportStaleWatch(of: fd, nil)
            forget(fd)
        }
        return nil
    }

    /// Makes `fd` ready for a new owner: forgets what remains of closed descriptors with this number.
    /// - Throws: `EEXIST` if something waits for the descriptor and would be replaced silently.
    package func takeOver(_ fd: CInt) throws(SystemError) {
        if livingHandler(of: fd) != nil { throw .isWatchedAlready(fd) }
        // The kernel refuses negative numbers later.
        if fd >= 0 { forget(fd) }
    }

    func reportStaleWatch(of fd: CInt, _ callSite: CallSite?) {
        if registrationFailures.noteStale() { LoopEvent.send(.staleWatch(fd, callSite)) }
    }

    /// Silences a registration that the poller's table lacks. The kernel would keep reporting it, so the loop would
    /// never wait.
    @inline(never)
    func endStaleRegistration(_ fd: CInt) {
        do throws(SystemError) {
            _ = try poller.removeStale(fd, kernel).orThrow(.epollControl, "descriptor \(fd)")
            return
        } catch { if error.isShortage { reportShortage(error) } else { reportStaleWatch(of: fd, nil) } }
        // A loop that embeds this one has registered the epoll descriptor, which must not be replaced then.
        let mayRebuild = !waker.isEmbedded && registrationFailures.mayRebuild(in: turnNumber)
        // Without a rebuild, the loop still wakes for nothing, but rarely.
        if !mayRebuild || !rebuildPoller() { usleep(1000) }
    }

    /// Moves the registrations in the poller's table to a new epoll descriptor.
    /// - Returns: false if the kernel has no room for one.
    private func rebuildPoller() -> Bool {
        var own = waker.descriptors(shared.waker)
        if let slot = signals.slot { own.append((.signals, slot.descriptor.load(ordering: .relaxed))) }
        if mainActor.isWatched, let queue = try? mainActor.descriptor(kernel) { own.append((.mainActor, queue)) }
        let isRebuilt = poller.rebuild(own, kernel)
        if !isRebuilt { registrationFailures.rebuildHasFailed(in: turnNumber) }
        if !poller.deferred.isEmpty { scheduleRetry() }
        return isRebuilt
    }
}
