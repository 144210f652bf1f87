import Glibc

// What becomes of registrations with epoll that cannot be made, that bring nothing, or that cannot be removed.

extension EventLoop {
    /// How long a registration is put off.
    private static var pause: Duration { .milliseconds(100) }

    // MARK: No room

    /// Goes on with `interest` and without a registration if `error` is a shortage, which may pass: `ENOSPC` is
    /// `fs.epoll.max_user_watches`, which every process of the user takes from.
    @inline(never)
    func deferRegistration(
        _ interest: Interest, of fd: CInt, handler: (any ReadinessHandler)?, _ error: SystemError
    ) throws(SystemError) {
        guard error.call == .epollControl, error.isShortage else { throw error }
        poller.setDeferredInterest(interest, of: fd, handler: handler)
        reportShortage(error)
        scheduleRetry()
    }

    /// Once an episode, which ends when there has been room for a second.
    private func reportShortage(_ error: SystemError) {
        let (last, now) = (lastShortage, clock.now)
        lastShortage = now
        if let last, last.duration(to: now) <= .seconds(1) { return }
        LoopEvent.send(.watchPaused(error))
    }

    /// One timer for all registrations that are put off; it does not keep the loop alive, as the descriptors do.
    private func scheduleRetry() {
        if retryTimer != nil { return }
        let deadline = now.advanced(by: Self.pause).nanoseconds
        let timer = timers.insert(deadline: deadline, interval: 0, job: RegistrationRetry(self))
        timers.setReferenced(timer, false)
        retryTimer = timer
    }

    /// `fd` is given up.
    @inline(never)
    func forgetTrouble(of fd: CInt) {
        futile[fd] = nil
        guard poller.deferred.isEmpty, let timer = retryTimer else { return }
        retryTimer = nil
        let job = timers.remove(timer)
        withExtendedLifetime(job) {}
    }

    /// Makes the registrations that were put off, as far as there is room.
    fileprivate func retryRegistrations() {
        retryTimer = nil
        let (shortage, refused) = poller.registerDeferred(kernel)
        if let shortage { reportShortage(shortage) }
        if !poller.deferred.isEmpty { scheduleRetry() }
        for (handler, ready) in refused { handler.descriptorIsReady(ready) }
    }

    // MARK: Readiness without a result

    /// `fd` was reported ready, and the call that followed found nothing, or failed in a way that leaves `fd` as it was.
    /// That repeats itself, since readiness is level-triggered: after 256 times within a second without progress, `fd` is
    /// watched only every 100 ms, until there is some. Such readiness exists: that of an error queue, of a socket for
    /// which the system has no memory, or of a call that a security module or seccomp forbids.
    ///
    /// - Parameters:
    ///   - progress: any number that changes when a call for `fd` achieves something.
    ///   - error: what the call answered; reported once an episode.
    @inline(never)
    package func noteFutileReadiness(of fd: CInt, progress: Int, _ error: @autoclosure () -> SystemError) {
        let now = clock.now
        var entry = futile[fd] ?? FutileReadiness(progress: progress, since: now)
        if entry.progress != progress || entry.since.duration(to: now) > .seconds(1) {
            entry = FutileReadiness(progress: progress, since: now)
        }
        entry.count += 1
        let isPaused = entry.count >= FutileReadiness.limit
        if isPaused { entry.since = now }
        futile[fd] = entry
        guard isPaused else { return }
        poller.suspend(fd, kernel)
        scheduleRetry()
        if entry.count == FutileReadiness.limit { LoopEvent.send(.watchPaused(error())) }
    }

    // MARK: Registrations out of reach

    /// Whether the descriptor that was registered as `fd` has been closed since.
    func isStale(_ fd: CInt) -> Bool { !isForked && poller.isStale(fd, kernel) }

    /// The kernel reports a registration that is not in the poller's table, and goes on doing so: without a cure the loop
    /// would never wait again.
    @inline(never)
    func endStray() {
        let fd = poller.provenStray
        poller.provenStray = -1
        if poller.removeStray(fd, kernel) { return }
        reportStray(fd, nil)
        // A loop that is carried is known by its epoll descriptor.
        guard !isCarried, counters.turns >= turnOfNextRebuild else { return }
        var own: [(source: Poller.Source, fd: CInt)] = []
        if hasWaker { own.append((.mailbox, wakeDescriptor.load(ordering: .relaxed))) }
        if timerDescriptor >= 0 { own.append((.timer, timerDescriptor)) }
        if let door = signals.door { own.append((.signals, door.descriptor.load(ordering: .relaxed))) }
        if watchesMainActorQueue, let queue = try? mainActorQueue() { own.append((.mainActor, queue)) }
        // Without room for it the loop turns in vain for a while, before it tries again.
        if !poller.rebuild(own, kernel) { turnOfNextRebuild = counters.turns + 65536 }
        if !poller.deferred.isEmpty { scheduleRetry() }
    }

    /// The first of a loop: a program that makes one such mistake may make it often.
    func reportStray(_ fd: CInt, _ origin: CallSite?) {
        if hasReportedStray { return }
        hasReportedStray = true
        LoopEvent.send(.staleWatch(fd, origin))
    }
}

/// How often a descriptor was ready for nothing.
struct FutileReadiness {
    /// How often in a row that may be. A few times are ordinary: another process may share the socket.
    static var limit: Int { 256 }

    let progress: Int
    /// The first time, or the beginning of the last pause.
    var since: LoopInstant
    var count = 0
}

/// The end of the pause.
private final class RegistrationRetry: Job {
    // The loop holds the job, and lets go of it when it ends.
    private unowned let loop: EventLoop

    init(_ loop: EventLoop) {
        self.loop = loop
        super.init()
    }

    override func run() { loop.retryRegistrations() }

    override var isReportedUndelivered: Bool { false }
}
