import Promises
import Reactor
import Synchronization

/// Serves connections on one loop, and counts them there.
final class Worker {
    private let idleTimeout: Duration?
    private let openCount: OpenCount
    private let former: FormerWorkers
    /// The open connections, each at the place that it keeps, and the places that are free. Half the memory of a set.
    private var connections: [Connection?] = []
    private var free: [Int] = []
    private var finished = Statistics()

    init(idleTimeout: Duration?, _ openCount: OpenCount, _ former: FormerWorkers) {
        self.idleTimeout = idleTimeout
        self.openCount = openCount
        self.former = former
    }

    deinit { former.add(statistics) }

    /// The current counters, including those of open connections.
    var statistics: Statistics {
        connections.reduce(into: finished) { $0.bytes += $1?.bytesReceived ?? 0 }
    }

    /// Serves one connection from its first byte to its last. The listener closes it afterwards.
    func serve(_ connection: Connection) -> Promise<Void> {
        let place = begin(connection)
        return echo(connection).ensure { self.end(place) }
    }

    private func begin(_ connection: Connection) -> Int {
        connection.idleTimeout = idleTimeout
        finished.begin()
        openCount.begin()
        guard let place = free.popLast() else {
            connections.append(connection)
            return connections.count - 1
        }
        connections[place] = connection
        return place
    }

    private func end(_ place: Int) {
        free.append(place)
        finished.end(connections[place].take()?.bytesReceived ?? 0)
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
