import Promises
import Reactor
import ReactorLibc

/// Fails a connection that makes no progress: the clock of `idleTimeout`, and of `writeTimeout`, which runs while
/// writes wait. The timer checks the last progress when it fires, so it fires once per period, not once per message.
final class IdleTimer {
    let limit: Duration
    private let watchesWrites: Bool
    // Weak, because the event loop may retain this object while another thread releases the connection.
    private weak var connection: Connection?
    private let loop: EventLoop
    private var timer: EventLoop.Timer?
    /// The time when bytes of waiting writes were last sent, or for `idleTimeout` the last known `lastActivity`.
    private var lastProgress: LoopInstant
    private var grace = Grace()

    init(_ limit: Duration, of connection: Connection, watchesWrites: Bool = false) {
        self.limit = limit
        self.watchesWrites = watchesWrites
        self.connection = connection
        loop = connection.loop
        lastProgress = loop.now
    }

    func start() {
        guard timer == nil, limit > .zero else { return }
        noteProgress()
        restart()
    }

    func noteProgress() { lastProgress = loop.now }

    func cancelTimer() { timer.take()?.cancel() }

    private func restart() {
        grace = Grace()
        setTimer(lastProgress.advanced(by: limit))
    }

    private func setTimer(_ moment: LoopInstant) { timer = loop.schedule(at: moment) { self.timerFired() } }

    private func timerFired() {
        timer = nil
        // The queue of a failed filter still waits for the peer.
        guard let connection, connection.lifecycle == .open,
            connection.writer.isQueued || connection.failure == nil && !watchesWrites
        else { return }
        if let active = connection.cold?.lastActivity, !watchesWrites { lastProgress = max(lastProgress, active) }
        let now = loop.now
        let deadline = lastProgress.advanced(by: limit)
        guard deadline <= now else { return restart() }
        // After a stall of the loop, or of the machine, the handlers of many connections may have become ready.
        if let time = grace.time(lateBy: deadline.duration(to: now), atMost: limit) {
            return setTimer(now.advanced(by: time))
        }
        let reads = connection.pollsForInput && !watchesWrites
        if connection.isReady(toRead: reads, toWrite: connection.writer.isQueued) {
            noteProgress()
            return restart()
        }
        let detail = watchesWrites ? "the peer has taken nothing for \(limit)" : "idle for \(limit)"
        let call = watchesWrites ? connection.writeCall : connection.readCall
        connection.timeOut(SystemError(call, ETIMEDOUT, detail: detail))
    }
}

extension Connection {
    /// Fails the connection at a time limit. If it has already failed, only drops the rest of the queue.
    func timeOut(_ error: SystemError) {
        if failure == nil {
            PeerWatching.tellHandler(of: error, at: self)
            // The cancellation may have ended the connection.
            guard lifecycle == .open else { return }
            noteFailure(error)
            endRead(error)
        }
        fail(error)
    }
}
