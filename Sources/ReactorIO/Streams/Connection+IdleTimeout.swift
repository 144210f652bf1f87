import Promises
import Reactor

extension Connection {
    /// Fails the connection with `ETIMEDOUT` when it has neither received nor sent a byte for this long. Pending and
    /// later operations fail with that error, queued bytes are dropped, and TCP ends with a reset. `nil`, the default,
    /// and values of zero or less mean no limit.
    ///
    /// Bytes in the kernel for a pending read, the peer's end, and room for a pending write count as activity, however
    /// long the loop was delayed. If it was delayed past the deadline, the connection gets another period as long as
    /// the delay, at most the time-out itself, so that delayed handlers can answer.
    ///
    /// A connection whose filter has failed still sends its queue. If the peer takes longer than the time-out, the
    /// queue is dropped.
    ///
    /// Activity costs a clock reading, about 25 ns. The timer is moved once per period, not once per message.
    public var idleTimeout: Duration? {
        get { cold?.rare?.idleClock?.limit }
        set {
            // Must cost nothing for a server without a time-out, which sets nil on each connection.
            guard newValue != nil || cold?.rare?.idleClock != nil else { return }
            loop.assertOwner()
            let rare = ensuredRareState
            rare.idleClock?.cancelTimer()
            let clock = newValue.map { IdleTimer($0, of: self) }
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
