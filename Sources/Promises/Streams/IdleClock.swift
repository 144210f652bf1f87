import Glibc
import Reactor

/// Fails a connection that is idle for the time of `idleTimeout`. The timer checks the last activity when it fires, so it fires
/// once per period, and not once per message.
final class IdleClock: IdleWatching {
    let limit: Duration
    // Not retained. The loop may retain this while another thread releases the connection.
    private let connection: UntilReleased<Connection>
    private var timer: EventLoop.Timer?
    /// Whether the limit has been reached once, and was postponed because the descriptor may be ready.
    private var wasPostponed = false

    init(_ limit: Duration, of connection: Connection) {
        self.limit = limit
        self.connection = UntilReleased(connection)
    }

    func start(_ connection: Connection) {
        guard limit > .zero else { return }
        connection.notesActivity = true
        connection.noteActivity()
        restart(connection)
    }

    func cancelTimer() { timer?.cancel() }

    func connectionEndsElsewhere() { connection.end() }

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
        // Retained before it fails if anything waits: that runs code of the program. If nothing does, it only becomes a failed one.
        let held = connection.borrow { connection -> Connection? in
            if connection.isRetainedHere { return connection }
            check(connection)
            return nil
        }
        if case let connection?? = held { check(connection) }
    }

    private func check(_ connection: Connection) {
        // The queue of a filter that has failed still waits for the peer.
        guard connection.lifecycle == .open, connection.failure == nil || connection.writer.isQueued else { return }
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
        fail(connection)
    }

    private func fail(_ connection: Connection) {
        if connection.failure == nil {
            let error = SystemError(connection.readCall, ETIMEDOUT, detail: "idle for \(limit)")
            PeerWatching.tellHandler(of: error, at: connection)
            // What the cancellation has called may have ended the connection.
            guard connection.lifecycle == .open else { return }
            connection.noteFailure(error)
            connection.endRead(error)
        }
        connection.lifecycle.fail()
        connection.failWrites()
        connection.updateInterest()
    }
}

extension Connection {
    /// Whether someone on the loop's thread retains this until an event there, and waits for it: the poller or a flush job for an
    /// operation (see `ConnectionInterest`), the listener or the pool for their attachment.
    fileprivate var isRetainedHere: Bool {
        reader.isWaiting || writer.isQueued || !interest.registered.isEmpty || attachment != nil
    }
}
