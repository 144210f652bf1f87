import Promises
import Reactor
import ReactorIO
import Synchronization

/// Serves and counts connections on one loop.
final class Worker {
    private let idleTimeout: Duration?
    private let openCount: OpenCount
    private let former: FormerWorkers
    /// The counters, including open connections.
    var statistics = Statistics()

    init(idleTimeout: Duration?, _ openCount: OpenCount, _ former: FormerWorkers) {
        self.idleTimeout = idleTimeout
        self.openCount = openCount
        self.former = former
    }

    deinit { former.add(statistics) }

    /// Serves one connection from its first byte to its last. Then the listener closes it.
    func serve(_ connection: Connection) -> Promise<Void> {
        connection.idleTimeout = idleTimeout
        return Echo(connection, of: self).run()
    }

    func echoDidBegin() {
        statistics.begin()
        openCount.begin()
    }

    func echoDidEnd() {
        statistics.end()
        openCount.end()
    }
}

/// The counters of ended loops' workers.
final class FormerWorkers: Sendable {
    private let sum = Mutex(Statistics())

    var statistics: Statistics { sum.withLock { $0 } }

    func add(_ statistics: Statistics) { sum.withLock { $0 = $0 + statistics } }
}
