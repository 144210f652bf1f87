import ReactorLibc

// How a loop treats epoll registrations that cannot be made, that report false readiness, or that cannot be removed.

extension EventLoop {
    /// The time after which a deferred registration is retried.
    private static var pause: Duration { .milliseconds(100) }

    /// Sets `interest` without a registration if `error` is a shortage, which may be temporary. `ENOSPC` refers to
    /// `fs.epoll.max_user_watches`, a limit that all processes of the user share. Throws any other error.
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

    /// Reports that the loop has no descriptors, for a caller that cannot, and sleeps for a moment. Without them, turns
    /// run jobs, mail and due timers.
    package func waitForDescriptors(_ error: SystemError) {
        reportShortage(error)
        usleep(10_000)
    }

    /// Starts one timer for all deferred registrations. It does not keep the loop alive, since the descriptors do.
    func scheduleRetry() {
        if registrationFailures.retryTimer != nil { return }
        let deadline = now.advanced(by: Self.pause).nanoseconds
        // The loop retains the job, and releases it when the loop ends.
        let retry = InternalJob { [unowned self] in retryRegistrations() }
        let timer = timers.insert(deadline: deadline, interval: 0, .job(retry))
        timers.setReferenced(timer, false)
        registrationFailures.retryTimer = timer
    }

    /// Called when `fd` is forgotten.
    @inline(never)
    func forgetFailures(of fd: CInt) {
        registrationFailures.forget(fd)
        guard poller.deferred.isEmpty, let timer = registrationFailures.retryTimer.take() else { return }
        let retry = timers.remove(timer)
        withExtendedLifetime(retry) {}
    }

    /// Makes the deferred registrations, as far as there is room.
    fileprivate func retryRegistrations() {
        registrationFailures.retryTimer = nil
        // There may be no epoll descriptor yet. Every registration would then fail as if its own descriptor were closed.
        do throws(SystemError) { try openDescriptors() } catch { return scheduleRetry() }
        let (shortage, refused) = poller.registerDeferred(kernel)
        if let shortage { reportShortage(shortage) }
        if !poller.deferred.isEmpty { scheduleRetry() }
        for (handler, ready, fd) in refused { call(handler, ready, fd) }
    }

    /// Counts spurious readiness: `fd` was reported ready, but the system call that followed found nothing, or failed
    /// in a way that leaves `fd` unchanged.
    ///
    /// Readiness is level-triggered, so this repeats itself. After 256 times within a second without progress, `fd` is
    /// watched only every 100 ms, until there is progress. Causes are an error queue, a socket for which the system has
    /// no memory, and a call that a security module or seccomp forbids.
    ///
    /// - Parameters:
    ///   - progress: any number that changes when a call for `fd` achieves something.
    ///   - error: the error of the call; reported once in each episode.
    @inline(never)
    package func noteSpuriousReadiness(of fd: CInt, progress: Int, _ error: @autoclosure () -> SystemError) {
        let (isPaused, isReported) = registrationFailures.noteSpuriousReadiness(
            of: fd, progress: progress, at: clock.now)
        guard isPaused else { return }
        poller.suspend(fd, kernel)
        scheduleRetry()
        if isReported { LoopEvent.send(.watchPaused(error())) }
    }

    /// Whether the descriptor that was registered as `fd` has since been closed.
    func isStale(_ fd: CInt) -> Bool { !isForked && poller.isStale(fd, kernel) }

    /// The handler that waits for `fd`, unless the descriptor has been closed and its number possibly opened again: the
    /// loop then forgets the handler, and reports that.
    func livingHandler(of fd: CInt) -> (any ReadinessHandler)? {
        guard let present = poller.handler(of: fd) else { return nil }
        // Without a registration nothing tells whether the descriptor is the same: its new owner has it.
        guard isStale(fd) else { return present is WatchGroup || poller.hasRegistration(of: fd) ? present : nil }
        if let group = present as? WatchGroup {
            group.end(on: self)
        } else {
            reportStaleWatch(of: fd, nil)
            forget(fd)
        }
        return nil
    }

    /// For a new owner of `fd`: forgets what closed descriptors have left under the number.
    /// - Throws: `EEXIST` if something waits for the descriptor: its new owner would replace it in silence.
    package func takeOver(_ fd: CInt) throws(SystemError) {
        if livingHandler(of: fd) != nil { throw .isWatchedAlready(fd) }
        // The kernel refuses a negative number later.
        if fd >= 0 { forget(fd) }
    }

    func reportStaleWatch(of fd: CInt, _ callSite: CallSite?) {
        if registrationFailures.noteStale() { LoopEvent.send(.staleWatch(fd, callSite)) }
    }

    /// Silences a registration that is missing from the poller's table. The kernel would continue to report it, so that
    /// the loop would never wait again.
    @inline(never)
    func endStaleRegistration(_ fd: CInt) {
        do throws(SystemError) {
            _ = try poller.removeStale(fd, kernel).orThrow(.epollControl, "descriptor \(fd)")
            return
        } catch { if error.isShortage { reportShortage(error) } else { reportStaleWatch(of: fd, nil) } }
        // A loop that embeds this one has registered its epoll descriptor, which therefore must not change.
        let mayRebuild = !waker.isEmbedded && registrationFailures.mayRebuild(in: turnNumber)
        // Otherwise the kernel continues to report it, and the loop wakes for nothing, but rarely.
        if !mayRebuild || !rebuildPoller() { usleep(1000) }
    }

    /// Moves to an epoll descriptor with only the registrations of the poller's table.
    /// - Returns: false if there is no room for one.
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
