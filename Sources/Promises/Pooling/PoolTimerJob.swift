import Reactor

/// The job of a pool's timer.
final class PoolTimerJob: Job {
    // What waits retains the pool; idle connections do not.
    private weak var pool: ConnectionPool?

    init(_ pool: ConnectionPool) {
        self.pool = pool
        super.init()
    }

    override func run() { pool?.timerFired() }

    override var isReportedUndelivered: Bool { false }

    override func discardAndRelease() {
        pool?.loopWillEnd()
        super.discardAndRelease()
    }
}
