import Glibc
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
            let rare = ensuredRareState
            rare.idleClock?.cancelTimer()
            notesActivity = rare.readPace != nil
            let clock = newValue.map { IdleClock($0, of: self) }
            rare.idleClock = clock
            if lifecycle.isOpen { clock?.start() }
        }
    }

    @inline(__always)
    func noteActivity() {
        if notesActivity { cold?.lastActivity = loop.now }
    }
}

/// Fails a connection that is idle for the time of `idleTimeout`.
final class IdleClock {
    let limit: Duration
    // Weak: the loop may retain this while another thread releases the connection.
    private weak var connection: Connection?
    private var timer: EventLoop.Timer?
    /// Whether the limit has been reached once, and was postponed because the descriptor may be ready.
    private var wasPostponed = false

    init(_ limit: Duration, of connection: Connection) {
        self.limit = limit
        self.connection = connection
    }

    func start() {
        guard limit > .zero, let connection else { return }
        connection.notesActivity = true
        connection.noteActivity()
        restart(connection)
    }

    func cancelTimer() { timer?.cancel() }

    private func restart(_ connection: Connection) {
        wasPostponed = false
        setTimer(connection, deadline(of: connection))
    }

    private func deadline(of connection: Connection) -> LoopInstant {
        connection.ensuredColdState.lastActivity.advanced(by: limit)
    }

    private func setTimer(_ connection: Connection, _ moment: LoopInstant) {
        timer = connection.loop.schedule(at: moment) { self.timerFired() }
    }

    private func timerFired() {
        // The queue of a filter that has failed still waits for the peer.
        guard let connection, connection.lifecycle == .open, connection.failure == nil || connection.writer.isQueued
        else { return }
        let now = connection.loop.now
        let deadline = deadline(of: connection)
        guard deadline <= now else { return restart(connection) }
        // Handlers that became ready together with this timer run first. After a stall of the loop, or of the machine,
        // these may be the handlers of many connections: they get as much time as was lost.
        guard wasPostponed else {
            wasPostponed = true
            return setTimer(connection, now.advanced(by: min(deadline.duration(to: now), limit)))
        }
        if connection.isReadyInKernel {
            connection.noteActivity()
            return restart(connection)
        }
        connection.timeOut(SystemError(connection.readCall, ETIMEDOUT, detail: "idle for \(limit)"))
    }
}

extension Connection {
    /// Fails the connection at a time limit, unless it has failed: then only the rest of the queue is dropped.
    func timeOut(_ error: SystemError) {
        if failure == nil {
            PeerWatching.tellHandler(of: error, at: self)
            // The cancellation may have ended the connection.
            guard lifecycle == .open else { return }
            noteFailure(error)
            endRead(error)
        }
        lifecycle.fail()
        failWrites()
        updateInterest()
    }
}
