import Reactor

/// The one timer of a pool. While it is set, it also tells the pool that the loop ends.
struct PoolTimer {
    private var timer: EventLoop.Timer?
    private var deadline = LoopInstant.distantFuture
    private var keepsAlive = true

    /// Makes the timer fire at `deadline` or before, and run the job that `job` makes if none is waiting.
    mutating func set(to deadline: LoopInstant, keepsAlive: Bool, on loop: EventLoop, _ job: @autoclosure () -> Job) {
        if let timer, timer.isActive {
            if deadline < self.deadline {
                timer.reschedule(at: deadline)
                self.deadline = deadline
            }
        } else {
            timer = loop.startTimer(at: deadline, job())
            self.deadline = deadline
            self.keepsAlive = true
        }
        if keepsAlive == self.keepsAlive { return }
        self.keepsAlive = keepsAlive
        if keepsAlive { timer?.ref() } else { timer?.unref() }
    }

    func cancel() { timer?.cancel() }

    /// Whether it is set and does not keep the loop alive.
    var isUnreferenced: Bool { timer?.isActive == true && !keepsAlive }
}
