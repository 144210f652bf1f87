import Promises
import Reactor

extension Connection {
    /// Fails the connection with `ETIMEDOUT` when it has neither received nor sent a byte for this long. Pending and
    /// later reads and writes then fail with that error. `nil`, the default, and values of zero or less mean no limit.
    /// Bytes that are still queued then are dropped, and TCP ends with a reset.
    ///
    /// Before the connection fails, the kernel is asked: bytes for a pending read, the peer's end, and room for a
    /// pending write count as activity, however long the loop was delayed and however many other descriptors are ready.
    /// If the loop was delayed past the deadline, the connection fails only after another period as long as the delay,
    /// at most the time-out itself, so that delayed handlers can answer.
    ///
    /// A connection whose filter has failed still sends its queue. If the peer takes longer than the time-out, the
    /// queue is dropped.
    ///
    /// Activity costs a clock reading, about 25 ns. When the timer fires it checks the last activity and is set to the
    /// remaining time, so it is moved once per period, not once per message.
    public var idleTimeout: Duration? {
        get { cold?.rare?.idleClock?.limit }
        set {
            // A server without a time-out sets nil on each connection; that must cost nothing.
            guard newValue != nil || cold?.rare?.idleClock != nil else { return }
            loop.assertOwner()
            let rare = ensuredRareState
            rare.idleClock?.cancelTimer()
            let clock = newValue.map { StallClock($0, of: self) }
            rare.idleClock = clock
            updateNotesActivity()
            if lifecycle.isOpenOrFailed { clock?.start() }
        }
    }

    func updateNotesActivity() { notesActivity = readRate != nil || (idleTimeout ?? .zero) > .zero }

    @inline(__always)
    func noteActivity() {
        if notesActivity { cold?.lastActivity = loop.now }
    }
}
