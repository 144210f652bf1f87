import Promises
import Reactor
import Synchronization

/// Serves connections on one loop, and counts them there.
final class Worker {
    private let idleTimeout: Duration?
    private let openCount: OpenCount
    private let former: FormerWorkers
    private var counters = Statistics()
    /// The bytes of its loop; from the first connection on.
    private var echoed: EchoedBytes?
    /// The current counters, including those of open connections.
    var statistics: Statistics {
        var statistics = counters
        statistics.bytes = echoed?.count ?? 0
        return statistics
    }

    init(idleTimeout: Duration?, _ openCount: OpenCount, _ former: FormerWorkers) {
        self.idleTimeout = idleTimeout
        self.openCount = openCount
        self.former = former
    }

    deinit { former.add(statistics) }

    /// Serves one connection from its first byte to its last. The listener closes it afterwards.
    func serve(_ connection: Connection) -> Promise<Void> {
        connection.idleTimeout = idleTimeout
        if echoed == nil { echoed = EchoedBytes.ofLoops.value(for: connection) }
        begin()
        return echo(connection).ensure { self.end() }
    }

    private func begin() {
        counters.begin()
        openCount.begin()
    }

    private func end() {
        counters.end()
        openCount.end()
    }

    func noteFailure() { counters.noteFailure() }
}

/// The counters of workers whose loops have ended.
final class FormerWorkers: Sendable {
    private let sum = Mutex(Statistics())

    var statistics: Statistics { sum.withLock { $0 } }

    func add(_ statistics: Statistics) { sum.withLock { $0 = $0 + statistics } }
}
