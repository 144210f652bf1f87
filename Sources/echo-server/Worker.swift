import Promises
import Reactor

/// Serves connections on one loop, and counts them there.
// @unchecked: everything but the constants is accessed only on the thread of `remote`, or on any thread once that loop
// has ended.
final class Worker: @unchecked Sendable {
    let remote: EventLoop.Remote
    private let idleTimeout: Duration?
    private let openCount: OpenCount
    private var connections: [ObjectIdentifier: Connection] = [:]
    private var finished = Statistics()

    init(on remote: EventLoop.Remote, idleTimeout: Duration?, _ openCount: OpenCount) {
        self.remote = remote
        self.idleTimeout = idleTimeout
        self.openCount = openCount
    }

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
