import Reactor

/// The drain of a listener on one loop: ends its idle connections, now and whenever one becomes idle. Accessed only on the
/// loop's thread.
final class LoopDrain {
    // The tracker owns this. The connections refer to it too, and may be kept for longer.
    private weak var tracker: ConnectionTracker?
    private let loop: EventLoop
    private let counts: ConnectionCounts
    /// From when on a connection counts as idle that has received something just now.
    private let lastCall: LoopInstant
    private var sweeping: EventLoop.Timer?
    /// The number of bytes that each connection has received, and since when it has received no more. By identity, as `ended`.
    private var received: [ObjectIdentifier: (count: Int, since: LoopInstant)] = [:]
    /// The connections that this has ended. By identity: the tracker retains them for as long as they are looked up here.
    private var ended: Set<ObjectIdentifier> = []

    /// The interval at which busy connections are checked for having become idle.
    private static var interval: Duration { .milliseconds(20) }
    /// For how long a connection must have received nothing to count as idle, unless it is between two frames: what its peer
    /// has sent may be on its way.
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

    /// The handler of a connection has finished. If its loop was ended, the connection counts as idle only now: the
    /// handler might have failed, or have gone on until the deadline.
    func handlerDidFinish(_ connection: Connection) {
        if ServedConnection.existing(of: connection)?.hasEndedLoop == true { note(connection, asIdle: true) }
    }

    /// Counts the connections whose handlers have finished, and from which the kernel has taken everything: a drain does
    /// not abort them.
    func noteDelivered() {
        guard let connections = tracker?.connections else { return }
        for (place, connection, _) in connections.all
        where connection.lifecycle == .lingering && connections.lingers(place) {
            note(connection, asIdle: false)
        }
    }

    /// The deadline has been reached.
    func abortAll() {
        let rest = tracker?.connections.all ?? []
        for entry in rest { note(entry.connection, asIdle: false) }
        for (_, connection, work) in rest {
            // A reset would destroy what the kernel has still to deliver.
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
