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
        get { (cold?.idleClock as? IdleClock)?.limit }
        set {
            // A server without a time-out sets nil on each connection; that must cost nothing.
            if newValue == nil && cold == nil { return }
            cold?.idleClock?.cancelTimer()
            notesActivity = false
            let clock = newValue.map { IdleClock($0, of: self) }
            ensuredColdState.idleClock = clock
            if lifecycle.isOpen { clock?.start() }
        }
    }

    @inline(__always)
    func noteActivity() {
        if notesActivity { cold?.lastActivity = loop.now }
    }
}
