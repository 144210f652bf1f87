import Glibc
import Reactor

extension Connection {
    /// Fails the connection, with `ETIMEDOUT`, when it has neither received nor sent a byte for this long; `nil`, which
    /// is the default, and anything that is not above zero mean never. A waiting read and waiting writes fail then,
    /// later ones too.
    ///
    /// Before it fails the kernel is asked: bytes that a waiting read would get, the peer's end, and room for a write that
    /// waits are no silence, however long the loop has been held and however many other descriptors are ready. A
    /// connection whose loop was held past its deadline fails no sooner than as long again after that, at most the time-out
    /// itself, so that handlers that were held up can answer.
    ///
    /// Activity costs a reading of the clock, about 25 ns. The timer looks at it when it fires and goes on for the rest, so
    /// that it is moved once a period and not once a message.
    public var idleTimeout: Duration? {
        get { cold?.idleTimeout }
        set {
            // A server that has no time-out says so for each connection; that is to cost nothing.
            if newValue == nil && cold == nil { return }
            let cold = makeColdState
            cold.idleTimeout = newValue
            cold.idleTimer?.cancel()
            cold.idleTimer = nil
            lastActivity = Self.notWatched
            guard lifecycle.isOpen, let newValue, newValue > .zero else { return }
            lastActivity = loop.now
            armIdleTimer(cold, newValue)
        }
    }

    /// The last activity of a connection for which it is not noted.
    static var notWatched: LoopInstant { LoopInstant(nanoseconds: .min) }

    @inline(__always)
    func noteActivity() {
        if lastActivity != Self.notWatched { lastActivity = loop.now }
    }

    private func armIdleTimer(_ cold: ColdState, _ timeout: Duration) {
        cold.seemsIdle = false
        cold.idleTimer = loop.schedule(at: lastActivity.advanced(by: timeout)) { [weak self] in self?.idleTimerFired() }
    }

    private func idleTimerFired() {
        guard lifecycle == .open, let cold, let timeout = cold.idleTimeout else { return }
        let now = loop.now
        let deadline = lastActivity.advanced(by: timeout)
        guard deadline <= now else { return armIdleTimer(cold, timeout) }
        // What has become ready with this timer has its turn first. After a stall of the loop, or of the machine, that may be
        // the handlers of many connections: they get as much time as was lost.
        guard cold.seemsIdle else {
            cold.seemsIdle = true
            let lost = min(deadline.duration(to: now), timeout)
            cold.idleTimer = loop.schedule(after: lost) { [weak self] in self?.idleTimerFired() }
            return
        }
        if isReadyInKernel {
            lastActivity = now
            return armIdleTimer(cold, timeout)
        }
        let error = SystemError(readCall, ETIMEDOUT, detail: "idle for \(timeout)")
        noteFailure(error)
        endRead(error)
        failWrites()
        updateInterest()
    }

    /// Whether the kernel has something for what waits here: input or the end for a read, room for writes, or an error. The
    /// loop may not have been told yet: it was held, it takes 256 events at a time, a signal has interrupted it. Not known,
    /// which only a want of memory can be the reason for, counts as true.
    var isReadyInKernel: Bool {
        var events: Int32 = 0
        if reader.isWaiting { events |= POLLIN }
        if writer.isQueued { events |= POLLOUT }
        if events == 0 { return false }
        return loop.kernel.poll(fd, Int16(events)) != 0
    }
}
