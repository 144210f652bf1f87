import Promises
import Reactor

/// What serves connections on one loop, and counts there what it does.
// @unchecked: everything but the constants is touched on the thread of `remote` only; or on any once that loop has ended.
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

    /// The counts as they stand, those of open connections included.
    var statistics: Statistics {
        connections.values.reduce(into: finished) { $0.bytes += $1.bytesReceived }
    }

    /// One connection from its first byte to its last. The listener closes it then.
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
