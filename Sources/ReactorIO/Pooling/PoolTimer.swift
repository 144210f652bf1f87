import Promises
import Reactor

/// A pool's only timer. While set, it also reports the loop's end to the pool.
struct PoolTimer {
    private var timer: EventLoop.Timer?
    private var deadline = LoopInstant.distantFuture
    private var keepsAlive = true

    /// Makes the timer fire at `deadline` or earlier. Uses `job` only if no timer is set.
    mutating func set(to deadline: LoopInstant, keepsAlive: Bool, on loop: EventLoop, _ job: @autoclosure () -> Job) {
        if let timer {
            if deadline < self.deadline {
                timer.reschedule(at: deadline)
                self.deadline = deadline
            }
        } else {
            timer = loop.startTimer(at: deadline, job())
            (self.deadline, self.keepsAlive) = (deadline, true)
        }
        if keepsAlive == self.keepsAlive { return }
        self.keepsAlive = keepsAlive
        if keepsAlive { timer?.ref() } else { timer?.unref() }
    }

    mutating func cancel() { timer.take()?.cancel() }

    mutating func didFire() { timer = nil }

    /// True when set, but not keeping the loop alive.
    var isUnreferenced: Bool { timer != nil && !keepsAlive }
}
