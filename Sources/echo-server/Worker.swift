import Promises
import Reactor
import Synchronization

/// Serves connections on one loop, and counts them there.
final class Worker {
    private let idleTimeout: Duration?
    private let openCount: OpenCount
    private let former: FormerWorkers
    private var connections: [ObjectIdentifier: Connection] = [:]
    private var finished = Statistics()

    init(idleTimeout: Duration?, _ openCount: OpenCount, _ former: FormerWorkers) {
        self.idleTimeout = idleTimeout
        self.openCount = openCount
        self.former = former
    }

    deinit { former.add(statistics) }

    /// The current counters, including those of open connections.
    var statistics: Statistics {
        connections.values.reduce(into: finished) { $0.bytes += $1.bytesReceived }
    }

    /// Serves one connection from its first byte to its last. The listener closes it afterwards.
    func serve(_ connection: Connection) -> Promise<Void> {
        begin(connection)
        return echo(connection).ensure { self.end(connection) }
    }

    private func begin(_ connection: Connection) {
        connection.idleTimeout = idleTimeout
        connections[ObjectIdentifier(connection)] = connection
        finished.begin()
        openCount.begin()
    }

    private func end(_ connection: Connection) {
        connections[ObjectIdentifier(connection)] = nil
        finished.end(connection.bytesReceived)
        openCount.end()
    }

    func noteFailure() { finished.noteFailure() }
}

/// The counters of workers whose loops have ended.
final class FormerWorkers: Sendable {
    private let sum = Mutex(Statistics())

    var statistics: Statistics { sum.withLock { $0 } }

    func add(_ statistics: Statistics) { sum.withLock { $0 = $0 + statistics } }
}
