import CLinux
import ReactorLibc
import Synchronization

// Waits on one epoll descriptor, with the watched descriptors, a timerfd for the nearest deadline, and an eventfd that
// other threads write to wake the loop.

extension EventLoop {
    /// A descriptor, owned by the loop, that is readable when `turn(.poll)` would do something. With it, another event
    /// loop (poll, GLib, another epoll) can embed this one.
    ///
    /// Ready jobs, and timers started since the last turn, do not make it readable. So turn this loop before the first
    /// wait, and then after each wait until `isReady` is false.
    public var fileDescriptor: CInt {
        get throws(SystemError) {
            try openDescriptors()
            waker.isEmbedded = true
            return poller.descriptor
        }
    }

    /// True when jobs or events are ready, so the next turn would not wait.
    public var isReady: Bool { jobs.hasJobs || !shared.waker.mailbox.isEmpty || poller.hasUndelivered }

    /// Polls for events. If `mayBlock`, waits for an event, a posted job or the next deadline.
    /// - Returns: the clock's reading after the wait, or `LoopMeter.unknown`.
    @inline(__always)
    func poll(mayBlock: Bool, _ limit: Int64, isMeasured: Bool) throws(SystemError) -> Int64 {
        // A job in this turn may have switched the measurement of turns.
        let isFastPath = meter.measuresTurns == isMeasured && hooks.isEmpty && !clock.isVirtual
        if !isFastPath { return try pollSlowPath(mayBlock: mayBlock, limit) }
        let began = isMeasured && mayBlock ? meter.beginningOfWait : 0
        let hasWaited = try pollKernel(mayBlock: mayBlock, limit)
        guard isMeasured && hasWaited else { return LoopMeter.unknown }
        timeOfPoll = meter.noteWait(since: began)
        return timeOfPoll
    }

    @inline(never)
    private func pollSlowPath(mayBlock: Bool, _ limit: Int64) throws(SystemError) -> Int64 {
        let isMeasured = mayBlock && meter.measuresTurns
        let began = isMeasured ? meter.beginningOfWait : 0
        let hasWaited: Bool
        timeOfPoll = LoopMeter.unknown
        if case .virtual(let virtual) = clock {
            hasWaited = try pollVirtually(virtual, mayBlock: mayBlock, limit)
        } else {
            let callsHooks =
                mayBlock && hooks.hasAny(.beforeWaiting) && !isDue(nextMoment(limit)) && shared.waker.mailbox.isEmpty
            hasWaited = try pollKernel(mayBlock: callsHooks ? callHooksBeforeWaiting(limit) : mayBlock, limit)
        }
        // A virtual clock may have jumped.
        if clock.isVirtual { timeOfPoll = LoopMeter.unknown }
        guard hasWaited else { return LoopMeter.unknown }
        let ended = isMeasured ? meter.noteWait(since: began) : LoopMeter.unknown
        if !hooks.hasAny(.afterWaiting) { return ended }
        hooks.call(.afterWaiting, meter)
        return LoopMeter.unknown
    }

    /// - Returns: true if the loop may still wait.
    private func callHooksBeforeWaiting(_ limit: Int64) -> Bool {
        // An earlier stop request is for a surrounding or the next `run()`. A `hang` or a direct turn waits anyway.
        let (wasAlive, wasStopped, handled) = (isAlive, stopRequested, meter.counters.handled)
        hooks.call(.beforeWaiting, meter, limit)
        // A turn inside a hook may have brought the awaited result; no event would report it later.
        if meter.counters.handled != handled { return false }
        // If a hook removed the last reason to stay alive, the wait would never end. (A caller that turns an idle loop
        // waits for other threads.)
        return !isReady && (!stopRequested || wasStopped) && (isAlive || !wasAlive)
    }

    /// - Returns: true if the loop has waited.
    @inline(__always)
    private func pollKernel(mayBlock: Bool, _ limit: Int64) throws(SystemError) -> Bool {
        timeOfPoll = LoopMeter.unknown
        // A server that waits for clients.
        if mayBlock && limit == .max && timers.isEmpty && hasWaker { return try sleep(-1) }
        return try pollUntilDeadline(mayBlock: mayBlock, limit)
    }

    @inline(never)
    private func pollUntilDeadline(mayBlock: Bool, _ limit: Int64) throws(SystemError) -> Bool {
        let deadline = nextMoment(limit)
        let isDue = isDue(deadline)
        let blocking = mayBlock && !isDue
        if !blocking && poller.descriptor < 0 {
            // Nothing watches the main actor's queue yet.
            mainActor.runJobs()
            return false
        }
        if !hasWaker { try openDescriptors() }
        let isArmed = isDue ? true : try waker.arm(deadline, &poller, shared.waker, kernel)
        guard blocking else {
            try waitNotAtAll()
            return false
        }
        let hasWaited = try sleep(isArmed ? -1 : milliseconds(until: deadline))
        if hasWaited { timeOfPoll = LoopMeter.unknown }
        return hasWaited
    }

    /// Returns the latest end of a wait, `.max` for never. There must be no undated timers.
    private func nextMoment(_ limit: Int64) -> Int64 {
        if timers.hasUndated { timeOfPoll = dateTimers() }
        return min(timers.nextDeadline ?? .max, limit)
    }

    @inline(__always)
    func dueTimers() -> TimerHeap.Due? { timers.isEmpty ? nil : lookForDueTimers() }

    @inline(never)
    private func lookForDueTimers() -> TimerHeap.Due? {
        let now = timers.hasUndated || timeOfPoll == LoopMeter.unknown ? dateTimers() : timeOfPoll
        lastDueMoment = now
        waker.noteTime(now)
        return timers.due(at: now)
    }

    private func isDue(_ deadline: Int64) -> Bool {
        if deadline == .max { return false }
        if timeOfPoll == LoopMeter.unknown { timeOfPoll = clock.now.nanoseconds }
        return deadline <= timeOfPoll
    }

    /// Polls the descriptors, then lets the time jump. The loop really waits only if there is no deadline, or while
    /// other threads work for it, which takes no virtual time. Work that itself waits for this loop does not count.
    private func pollVirtually(_ virtual: VirtualClock, mayBlock: Bool, _ limit: Int64) throws(SystemError) -> Bool {
        if poller.descriptor >= 0 { try waitNotAtAll() }
        // A signal interrupted the poll, so arrivals are unknown. Polling again takes no virtual time.
        if poller.wasInterrupted { return false }
        // Before the mailbox; see `isAlive`.
        var awaitsExternalWork = shared.work.externalWork.isBusy
        guard mayBlock && !poller.hasUndelivered && shared.waker.mailbox.isEmpty else { return false }
        if hooks.hasAny(.beforeWaiting) && !isDue(nextMoment(limit)) {
            guard callHooksBeforeWaiting(limit) else { return false }
            // A hook may have dispatched a job to a pool.
            awaitsExternalWork = shared.work.externalWork.isBusy
            guard shared.waker.mailbox.isEmpty else { return false }
        }
        let deadline = nextMoment(limit)
        if deadline != .max && (!awaitsExternalWork || deadline <= virtual.now.nanoseconds) {
            let isJump = deadline > virtual.now.nanoseconds
            virtual.advance(to: LoopInstant(nanoseconds: deadline))
            return isJump
        }
        if !hasWaker { try openDescriptors() }
        return try sleep(waker.realLimit)
    }

    /// Waits with the mailbox parked, unless it has jobs.
    @inline(__always)
    private func sleep(_ milliseconds: CInt) throws(SystemError) -> Bool {
        guard park() else { return false }
        poller.isBetweenJobs = false
        do throws(SystemError) { try wait(milliseconds) } catch {
            unpark()
            throw error
        }
        unpark()
        return true
    }

    private func waitNotAtAll() throws(SystemError) {
        poller.isBetweenJobs = jobs.hasJobs
        try wait(0)
    }

    @inline(__always)
    func wait(_ milliseconds: CInt) throws(SystemError) {
        if signals.taken != .max { SignalRegistry.unblockWatched(&signals.taken) }
        meter.counters.events += try poller.wait(milliseconds, kernel)
    }

    /// Rounds up, since a wait that ends before the deadline would need another.
    private func milliseconds(until deadline: Int64) -> CInt {
        CInt(clamping: max(deadline - now.nanoseconds, 0) / 1_000_000 + 1)
    }

    /// Makes the descriptor readable for posted jobs and for the next timer. Called after a turn of an embedded loop.
    func prepareForEmbedding() throws(SystemError) {
        // The timerfd first: a thread that finds the mailbox parked may arm the timerfd to wake the loop.
        if case .monotonic = clock, let deadline = nextDeadline?.nanoseconds {
            _ = try waker.arm(deadline, &poller, shared.waker, kernel)
        }
        _ = park()
    }

    /// Returns false if there are posted jobs. A nested turn may have left the mailbox parked.
    private func park() -> Bool { waker.park(shared.waker) }

    @inline(__always)
    func unpark() {
        if waker.unpark(shared.waker) { meter.counters.wakeups += 1 }
    }

    /// There must be an event.
    func deliverEvents() {
        if meter.isTiming { meter.beginTiming() }
        repeat {
            // A handler may have begun measuring.
            if !meter.isTiming, let (slot, fd, ready) = poller.expected() {
                let handler = poller.take(slot)
                let interest = handler.descriptorIsReady(Interest(rawValue: ready))
                if interest.isEmpty { continue }
                // Inline here: a call would retain and release the handler, which moves out of its slot and back.
                if poller.mayRenew(interest, of: fd) {
                    poller.renew(interest, of: fd, handler)
                } else {
                    setInterest(interest, of: fd, handler)
                }
            } else if meter.isTiming, !meter.readsClock, let (slot, fd, ready) = poller.expected() {
                deliverShown(slot, fd, Interest(rawValue: ready))
            } else {
                let event = poller.next(kernel)
                if !poller.deferred.isEmpty { scheduleRetry() }
                if let event { deliver(event) }
            }
        } while poller.hasUndelivered && (!jobs.isUrgent || hasEventsAfterUrgentJob())
    }

    /// The same for a loop that a console watches.
    @inline(never)
    private func deliverShown(_ slot: UnsafeMutablePointer<Poller.Slot>, _ fd: Int, _ ready: Interest) {
        let handler = poller.take(slot)
        var interest: Interest = []
        meter.call(.watch, handler.callSite(of: ready), descriptor: fd) { interest = handler.descriptorIsReady(ready) }
        if interest.isEmpty { return }
        if poller.mayRenew(interest, of: fd) {
            poller.renew(interest, of: fd, handler)
        } else {
            setInterest(interest, of: fd, handler)
        }
    }

    @inline(never)
    private func hasEventsAfterUrgentJob() -> Bool {
        jobs.runUrgent()
        // The handler may have turned the loop.
        return poller.hasUndelivered
    }

    /// See `ReadinessHandler`.
    func call(_ handler: any ReadinessHandler, _ ready: Interest, _ fd: Int) {
        let interest = handler.descriptorIsReady(ready)
        if !interest.isEmpty { setInterest(interest, of: fd, handler) }
    }

    @inline(never)
    private func setInterest(_ interest: Interest, of fd: Int, _ handler: any ReadinessHandler) {
        do throws(SystemError) { try setInterest(interest, of: CInt(fd), handler: handler) } catch {
            handler.interestWasRefused(error)
        }
    }

    @inline(never)
    private func deliver(_ event: Poller.PollEvent) {
        switch event {
        case .handler(let handler, let ready, let fd):
            meter.call(.watch, handler.callSite(of: ready), descriptor: fd) { call(handler, ready, fd) }
        case .loop(.signals): signals.enqueueArrived(into: &jobs.ready)
        // This event only ends the wait.
        case .loop(.mailbox): break
        case .loop(.timer): waker.timerHasFired()
        case .loop(.mainActor): meter.call(.job, nil) { mainActor.runJobs() }
        case .staleRegistration(let fd): endStaleRegistration(fd)
        }
    }

    var hasWaker: Bool { shared.waker.isOpen }

    /// Opens the loop's descriptors at the first watch, signal, child or wait. Later, the program's sockets might have
    /// used up all descriptors, and the loop could not report it. Opens all or none; the next call tries again.
    func openDescriptors() throws(SystemError) {
        if hasEnded { throw SystemError(.epollCreate, EBADF, detail: "the loop has ended") }
        // The parent shares the epoll descriptor, and would see additions.
        if isForked { throw SystemError(.epollControl, EPERM, detail: "the loop belongs to the parent process") }
        if hasWaker { return }
        _ = LineWriter.standardError
        try poller.open(kernel)
        do throws(SystemError) {
            try mainActor.watch(&poller, kernel)
            try waker.open(&poller, shared.waker, kernel)
        } catch {
            poller.close(kernel)
            throw error
        }
    }
}
