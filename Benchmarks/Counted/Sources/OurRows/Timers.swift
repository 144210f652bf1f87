import Reactor
import Workload

let timers: [Workload] = [
    Workload("timer-0", run: startAndCancel),
    Workload("timer-200000", prepare: { _ = crowd }, run: startAndCancel),
]

/// Fills the main thread's loop, once.
private let crowd: Void = {
    var delays = Delays()
    for _ in 0..<Delays.crowd { EventLoop.current.schedule(after: .milliseconds(delays.next())) {} }
}()

func startAndCancel(_ n: Int) {
    let loop = EventLoop.current
    var delays = Delays()
    var fired = 0
    var cancelled = 0
    for _ in 0..<n {
        let timer = loop.schedule(after: .milliseconds(delays.next())) { fired += 1 }
        if timer.cancel() { cancelled += 1 }
    }
    precondition(fired == 0 && cancelled == n)
}
