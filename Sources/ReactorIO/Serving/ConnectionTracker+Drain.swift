import Promises
import Reactor

extension ConnectionTracker {
    /// The interval at which busy connections are checked for idleness.
    private static var interval: Duration { .milliseconds(20) }
    /// The time without input after which a connection is idle: bytes may be in transit. Does not apply between two
    /// frames.
    private static var quietPeriod: Duration { .milliseconds(200) }

    func drain(within time: Duration) {
        isDraining = true
        // From `lastCall` on, even a connection that has just received something is idle.
        let lastCall = loop.now.advanced(by: time - min(time / 5, .seconds(1)))
        for entry in connections.all {
            ServedConnection.of(entry.connection).tracker = self
            entry.connection.beginDrain()
        }
        sweep(lastCall)
        // Closing a connection may run its handler inline, and so end the last connection.
        if connections.count > 0 { sweeping = loop.schedule(every: Self.interval) { [self] in sweep(lastCall) } }
    }

    private func sweep(_ lastCall: LoopInstant) {
        noteDelivered()
        let now = loop.now
        let isLastCall = now >= lastCall
        for connection in connections.all.map(\.connection) {
            if isLastCall { connection.beginLastCall() }
            let isQuiet = isLastCall || quietTime(of: connection, at: now) >= Self.quietPeriod
            if isQuiet || connection.isBetweenFrames { endIfIdle(connection) }
        }
    }

    private func quietTime(of connection: Connection, at now: LoopInstant) -> Duration {
        let (served, count) = (ServedConnection.of(connection), connection.bytesReceived)
        if let (known, since) = served.received, known == count { return since.duration(to: now) }
        // A client that has long been silent between two frames is not about to send one.
        let since = served.received == nil ? connection.cold?.frameClock?.silence(of: connection) ?? now : now
        served.received = (count, since)
        return since.duration(to: now)
    }

    func endIfAnswered(_ connection: Connection) {
        if connection.isBetweenFrames { endIfIdle(connection) }
    }

    private func endIfIdle(_ connection: Connection) {
        guard connection.isIdle, connection.hearsLastCall || connection.socket.unreadBytes == 0 else { return }
        if connection.endWaitingLoop() { return }
        note(connection, asIdle: true)
        connection.noteEndByDrain()
        connection.close()
    }

    private func note(_ connection: Connection, asIdle: Bool) {
        let served = ServedConnection.of(connection)
        if served.isLeaving { return }
        served.isLeaving = true
        if asIdle { server.counts.countIdle() } else { server.counts.countLeaving() }
    }

    /// Counts as idle a connection whose read loop the drain has ended and whose handler has finished. Until the
    /// handler finished, it might have failed or worked until the deadline.
    func handlerDidFinish(_ connection: Connection) {
        if connection.inputEnd == .drained { note(connection, asIdle: true) }
    }

    /// Counts connections whose bytes the kernel has accepted: a drain does not abort them.
    func noteDelivered() {
        for entry in connections.all where entry.lingers && entry.connection.lifecycle == .lingering {
            note(entry.connection, asIdle: false)
        }
    }

    func abortAll() {
        isAborted = true
        let rest = connections.all
        for entry in rest { note(entry.connection, asIdle: false) }
        for entry in rest {
            let connection = entry.connection
            // A reset would destroy data that the kernel has not delivered yet.
            if connection.isClosed || connection.isIdle { connection.close(linger: .zero) } else { connection.abort() }
            entry.work?.cancel()
        }
    }
}
