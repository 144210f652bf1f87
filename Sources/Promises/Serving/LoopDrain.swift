import Reactor

/// The drain of a listener on one loop: ends its idle connections, now and whenever one becomes idle. Accessed only on
/// the loop's thread.
final class LoopDrain {
    // The tracker owns this. The connections also refer to it, and may be kept for longer.
    private weak var tracker: ConnectionTracker?
    private let loop: EventLoop
    private let counts: ConnectionCounts
    /// The time from which even a connection that has just received something counts as idle.
    private let lastCall: LoopInstant
    private var sweeping: EventLoop.Timer?
    /// The number of bytes that each connection has received, and the time since which it has received no more. By
    /// identity, like `ended`.
    private var received: [ObjectIdentifier: (count: Int, since: LoopInstant)] = [:]
    /// The connections that this has ended. By identity: the tracker retains them as long as they are looked up here.
    private var ended: Set<ObjectIdentifier> = []

    /// The interval at which busy connections are checked for idleness.
    private static var interval: Duration { .milliseconds(20) }
    /// The time without input after which a connection counts as idle, unless it is between two frames: bytes from its
    /// peer may be on their way.
    private static var quietPeriod: Duration { .milliseconds(200) }

    init(of tracker: ConnectionTracker, on loop: EventLoop, _ counts: ConnectionCounts, within deadline: Duration) {
        self.tracker = tracker
        self.loop = loop
        self.counts = counts
        lastCall = loop.now.advanced(by: deadline - min(deadline / 5, .seconds(1)))
    }

    func begin() {
        for connection in connections { ServedConnection.of(connection).drain = self }
        sweep()
        // An inline handler of a closed connection may have ended the last one.
        if tracker?.openCount ?? 0 > 0 { sweeping = loop.schedule(every: Self.interval) { [self] in sweep() } }
    }

    private var connections: [Connection] { tracker?.connections.all.map(\.connection) ?? [] }

    private func sweep() {
        noteDelivered()
        let now = loop.now
        for connection in connections {
            let isQuiet = quietTime(of: connection, at: now) >= Self.quietPeriod || now >= lastCall
            if isQuiet || connection.isBetweenFrames { endIfIdle(connection) }
        }
    }

    private func quietTime(of connection: Connection, at now: LoopInstant) -> Duration {
        let (key, count) = (ObjectIdentifier(connection), connection.bytesReceived)
        if let (known, since) = received[key], known == count { return since.duration(to: now) }
        received[key] = (count, now)
        return .zero
    }

    /// Ends a connection that waits for another frame and owes its peer nothing.
    func endIfAnswered(_ connection: Connection) {
        if tracker != nil, connection.isBetweenFrames { endIfIdle(connection) }
    }

    private func endIfIdle(_ connection: Connection) {
        guard connection.isIdle, connection.socket.unreadBytes == 0 else { return }
        if connection.endWaitingLoop() { return }
        note(connection, asIdle: true)
        connection.close()
    }

    private func note(_ connection: Connection, asIdle: Bool) {
        guard ended.insert(ObjectIdentifier(connection)).inserted else { return }
        if asIdle { counts.countIdle() } else { counts.countLeaving() }
    }

    func hasEnded(_ connection: Connection) -> Bool { ended.contains(ObjectIdentifier(connection)) }

    /// The handler of a connection has finished. If the drain ended its loop, the connection counts as idle only now:
    /// the handler might have failed, or have gone on until the deadline.
    func handlerDidFinish(_ connection: Connection) {
        if ServedConnection.existing(of: connection)?.hasEndedLoop == true { note(connection, asIdle: true) }
    }

    /// Counts the connections whose handlers have finished, and whose bytes the kernel has taken: a drain does not
    /// abort them.
    func noteDelivered() {
        guard let connections = tracker?.connections else { return }
        for (place, connection, _) in connections.all
        where connection.lifecycle == .lingering && connections.lingers(place) {
            note(connection, asIdle: false)
        }
    }

    /// Called at the deadline.
    func abortAll() {
        let rest = tracker?.connections.all ?? []
        for entry in rest { note(entry.connection, asIdle: false) }
        for (_, connection, work) in rest {
            // A reset would destroy data that the kernel has yet to deliver.
            if connection.isClosed || connection.isIdle { connection.close(linger: .zero) } else { connection.abort() }
            work?.cancel()
        }
    }

    func connectionDidClose(_ connection: Connection) {
        received[ObjectIdentifier(connection)] = nil
        if ended.remove(ObjectIdentifier(connection)) != nil { counts.countLeft() }
        if tracker?.openCount == 0 { sweeping.take()?.cancel() }
    }
}
