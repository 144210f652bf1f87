import Promises
import Reactor

extension Connection {
    /// The time after which the connection fails with `ETIMEDOUT` if it has neither received nor sent a byte. Pending
    /// and later operations fail with that error, queued bytes are dropped, and TCP ends with a reset. `nil`, the
    /// default, and values of zero or less mean no limit.
    ///
    /// Bytes or the peer's end waiting in the kernel for a pending read, and room for a pending write, count as
    /// activity, however long the event loop was delayed. If it was delayed past the deadline, the connection gets as
    /// much extra time as the delay, at most the time-out, so that delayed handlers can answer.
    ///
    /// A connection whose filter has failed still sends its queue, which is dropped if the peer takes longer than the
    /// time-out.
    ///
    /// Activity costs a clock reading, about 25 ns. The timer is moved once per period, not once per message.
    public var idleTimeout: Duration? {
        get { cold?.rare?.idleClock?.limit }
        set {
            // A server without a time-out sets `nil` on each connection, which must cost nothing.
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
