import Glibc
import Promises
import Reactor
import Workload

/// To another thread and back, both on one processor: each settles the promise for which the other waits.
let hop = Workload("hop", prepare: { _ = pinnedToOneProcessor }, run: pingPong)

// @unchecked: each side writes its own resolver, and then settles the other's promise, which orders this before the
// reading there.
final class Court: @unchecked Sendable {
    var here: Resolver<Int>?
    var there: Resolver<Int>?
}

func pingPong(_ n: Int) {
    let court = Court()
    let (first, resolver) = Promise<Int>.pending()
    court.there = resolver
    let other = startThread { answer(first, court, n) }
    // What comes back from another thread is not seen by the loop; without this, each `hang` would be logged as one
    // that perhaps waits for ever.
    let hold = EventLoop.current.hold()
    var sum = 0
    for _ in 0..<n {
        let (pong, resolver) = Promise<Int>.pending()
        court.here = resolver
        court.there!.fulfill(1)
        sum &+= try! hang(pong)
    }
    hold.release()
    // The last one of the other side, for which nobody waits.
    court.there!.fulfill(0)
    pthread_join(other, nil)
    precondition(sum == n)
}

func answer(_ first: Promise<Int>, _ court: Court, _ n: Int) {
    let hold = EventLoop.current.hold()
    var ping = first
    for _ in 0..<n {
        let value = try! hang(ping)
        let (next, resolver) = Promise<Int>.pending()
        ping = next
        court.there = resolver
        court.here!.fulfill(value)
    }
    hold.release()
}
