import Reactor

/// The one timer of a pool. While it is set, it also tells the pool that the loop ends.
struct PoolTimer {
    private var timer: EventLoop.Timer?
    private var deadline = LoopInstant.distantFuture
    private var keepsAlive = true

    /// Makes the timer fire at `deadline` or before.
    mutating func set(to deadline: LoopInstant, keepsAlive: Bool, for pool: ConnectionPool) {
        if let timer, timer.isActive {
            if deadline < self.deadline {
                timer.reschedule(at: deadline)
                self.deadline = deadline
            }
        } else {
            timer = pool.loop.startTimer(at: deadline, PoolTimerJob(pool))
            self.deadline = deadline
            self.keepsAlive = true
        }
        if keepsAlive == self.keepsAlive { return }
        self.keepsAlive = keepsAlive
        if keepsAlive { timer?.ref() } else { timer?.unref() }
    }

    func cancel() { timer?.cancel() }
}

private final class PoolTimerJob: Job {
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
