import Glibc
import Reactor

extension Connection {
    /// Fails the connection with `ETIMEDOUT` when it has neither received nor sent a byte for this long. Waiting and
    /// later reads and writes then fail with that error. `nil`, the default, and values of zero or less mean no limit. If
    /// written bytes are still queued at that time, they are dropped, and the end of the connection is a reset at TCP.
    ///
    /// Before the connection fails, the kernel is asked: bytes that a waiting read would get, the peer's end, and room
    /// for a waiting write count as activity, however long the loop was delayed and however many other descriptors are
    /// ready. If the loop was delayed past the connection's deadline, the connection fails no sooner than after another
    /// period as long as the delay, at most the time-out itself, so that delayed handlers can answer.
    ///
    /// A connection whose filter has failed still sends what is queued. If that takes the peer longer than the time-out,
    /// the queue is dropped.
    ///
    /// Activity costs a reading of the clock, about 25 ns. The timer checks the last activity when it fires and is then
    /// set to the remaining time, so that it is moved once per period instead of once per message.
    public var idleTimeout: Duration? {
        get { cold?.idleTimeout }
        set {
            // A server without a time-out sets nil on each connection; that must cost nothing.
            if newValue == nil && cold == nil { return }
            let cold = ensuredColdState
            cold.idleTimeout = newValue
            cold.idleTimer?.cancel()
            cold.idleTimer = nil
            lastActivity = Self.notWatched
            guard lifecycle.isOpen, let newValue, newValue > .zero else { return }
            lastActivity = loop.now
            armIdleTimer(cold, newValue)
        }
    }

    /// The value of `lastActivity` while activity is not noted.
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
        // The queue of a filter that has failed still waits for the peer.
        guard lifecycle == .open, failure == nil || writer.isQueued, let cold, let timeout = cold.idleTimeout else {
            return
        }
        let now = loop.now
        let deadline = lastActivity.advanced(by: timeout)
        guard deadline <= now else { return armIdleTimer(cold, timeout) }
        // Handlers that became ready together with this timer run first. After a stall of the loop, or of the machine,
        // these may be the handlers of many connections: they get as much time as was lost.
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
        if failure == nil {
            let error = SystemError(readCall, ETIMEDOUT, detail: "idle for \(timeout)")
            tellHandler(of: error)
            // What the cancellation has called may have ended the connection.
            guard lifecycle == .open else { return }
            noteFailure(error)
            endRead(error)
        }
        lifecycle.fail()
        failWrites()
        updateInterest()
    }

    /// Whether the kernel has something for the operations that wait here: input or the end for a read, room for
    /// writes, or an error. The loop may not have seen it yet: it was delayed, it takes 256 events at a time, or a
    /// signal has interrupted it. True also when the kernel cannot tell, which only a lack of memory can cause.
    var isReadyInKernel: Bool {
        var events: Int32 = 0
        if traits.isDiverted ? readsDiverted : reader.isWaiting { events |= POLLIN }
        if writer.isQueued { events |= POLLOUT }
        if events == 0 { return false }
        return loop.kernel.poll(fd, Int16(events)) != 0
    }
}
