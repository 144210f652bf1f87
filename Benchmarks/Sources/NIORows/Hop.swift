import NIOCore
import NIOPosix
import Workload

/// Two loops whose threads share a processor. Created once.
let pinnedLoops: [any EventLoop] = {
    _ = pinnedToOneProcessor
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 2)
    return [group.next(), group.next()]
}()

// @unchecked: each side writes its own promise, and then settles the other's, which orders the write before the read
// there.
final class Court: @unchecked Sendable {
    var here: EventLoopPromise<Int>?
    var there: EventLoopPromise<Int>?
}

/// A loop's thread must not block, so each side continues in a callback.
func pingPong(_ n: Int) {
    let (here, there) = (pinnedLoops[0], pinnedLoops[1])
    let court = Court()
    let first = there.makePromise(of: Int.self)
    court.there = first
    let done = here.makePromise(of: Void.self)
    there.execute { answer(first.futureResult, there, court) }
    here.execute { ask(here, court, n, done) }
    try! done.futureResult.wait()
}

func ask(_ here: any EventLoop, _ court: Court, _ left: Int, _ done: EventLoopPromise<Void>) {
    guard left > 0 else {
        court.there!.fail(Failure())
        return done.succeed()
    }
    let pong = here.makePromise(of: Int.self)
    pong.futureResult.whenSuccess { _ in ask(here, court, left - 1, done) }
    court.here = pong
    court.there!.succeed(1)
}

func answer(_ ping: EventLoopFuture<Int>, _ there: any EventLoop, _ court: Court) {
    ping.whenSuccess { value in
        let next = there.makePromise(of: Int.self)
        court.there = next
        answer(next.futureResult, there, court)
        court.here!.succeed(value)
    }
}
