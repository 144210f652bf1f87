import NIOCore
import NIOPosix
import Workload

/// A separate loop with many outstanding timers. Created once.
let crowd: any EventLoop = {
    let loop = MultiThreadedEventLoopGroup(numberOfThreads: 1).next()
    try! loop.submit {
        var delays = Delays()
        for _ in 0..<Delays.crowd { loop.scheduleTask(in: .milliseconds(delays.next())) {} }
    }.wait()
    return loop
}()

func startAndCancel(_ loop: any EventLoop, _ n: Int) {
    let fired = Sum()
    var delays = Delays()
    for _ in 0..<n {
        let task = loop.scheduleTask(in: .milliseconds(delays.next())) { fired.value += 1 }
        task.cancel()
    }
    precondition(fired.value == 0)
}

func isolatedStartAndCancel(_ loop: any EventLoop, _ n: Int) {
    let loop = loop.assumeIsolated()
    var fired = 0
    var delays = Delays()
    for _ in 0..<n {
        let task = loop.scheduleTask(in: .milliseconds(delays.next())) { fired += 1 }
        task.cancel()
    }
    precondition(fired == 0)
}

/// From outside, since a loop's own thread must not block.
func waitForTimer(_ n: Int) {
    let loop = group.next()
    let fired = Sum()
    for _ in 0..<n { try! loop.scheduleTask(in: .zero) { fired.value += 1 }.futureResult.wait() }
    precondition(fired.value == n)
}
