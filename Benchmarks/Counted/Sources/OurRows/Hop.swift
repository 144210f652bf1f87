import Glibc
import Promises
import Reactor
import Workload

/// To another thread and back, both on one processor: each settles the promise that the other waits for, with `hang` or
/// with a handler.
let hops: [Workload] = [
    Workload("hop", prepare: { _ = pinnedToOneProcessor }, run: pingPongByHang),
    Workload("hop-handlers", prepare: { _ = pinnedToOneProcessor }, run: pingPongByHandlers),
]

// @unchecked: each side writes its own resolver, and then settles the other's promise, which orders the write before
// the read there.
final class Court: @unchecked Sendable {
    @exclusivity(unchecked) var here: Resolver<Int>?
    @exclusivity(unchecked) var there: Resolver<Int>?
}

func pingPongByHang(_ n: Int) {
    let court = Court()
    let (first, resolver) = Promise<Int>.pending()
    court.there = resolver
    let other = startThread { answerByHang(first, court, n) }
    // The loop does not see that another thread will settle the promise; without this, each `hang` would be logged as
    // one that may wait forever.
    let hold = EventLoop.current.hold()
    var sum = 0
    for _ in 0..<n {
        let (pong, resolver) = Promise<Int>.pending()
        court.here = resolver
        court.there!.fulfill(1)
        sum &+= try! hang(pong)
    }
    hold.cancel()
    // The other side's last promise, which has no waiter.
    court.there!.fulfill(0)
    pthread_join(other, nil)
    precondition(sum == n)
}

func answerByHang(_ first: Promise<Int>, _ court: Court, _ n: Int) {
    let hold = EventLoop.current.hold()
    var ping = first
    for _ in 0..<n {
        let value = try! hang(ping)
        let (next, resolver) = Promise<Int>.pending()
        ping = next
        court.there = resolver
        court.here!.fulfill(value)
    }
    hold.cancel()
}

func pingPongByHandlers(_ n: Int) {
    let court = Court()
    let (first, resolver) = Promise<Int>.pending()
    court.there = resolver
    let other = startThread {
        let hold = EventLoop.current.hold()
        answer(first, court, n, hold)
        try! EventLoop.current.run()
    }
    ask(court, n, EventLoop.current.hold())
    try! EventLoop.current.run()
    pthread_join(other, nil)
}

func ask(_ court: Court, _ left: Int, _ hold: EventLoop.Hold) {
    guard left > 0 else {
        court.there!.fulfill(0)
        hold.cancel()
        return
    }
    let (pong, resolver) = Promise<Int>.pending()
    _ = pong.done { _ in ask(court, left - 1, hold) }
    court.here = resolver
    court.there!.fulfill(1)
}

func answer(_ ping: Promise<Int>, _ court: Court, _ left: Int, _ hold: EventLoop.Hold) {
    _ = ping.done { value in
        guard left > 0 else {
            hold.cancel()
            return
        }
        let (next, resolver) = Promise<Int>.pending()
        court.there = resolver
        answer(next, court, left - 1, hold)
        court.here!.fulfill(value)
    }
}
