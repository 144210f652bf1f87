import NIOCore
import NIOPosix
import Workload

// A future's value can only be read by a callback. So only the last unit of a stretch is checked, and the others do
// less than ours, where `hang` reads every value.

let plainRows: [Workload] = [
    onLoop("make-settle", makeSettle),
    onLoop("make-keep-settle", makeSettle),
    onLoop("value", makeValue),
    onLoop("map-pending-1") { mapPending($0, 1, $1) },
    onLoop("map-pending-10") { mapPending($0, 10, $1) },
    onLoop("map-pending-1000") { mapPending($0, 1000, $1) },
    onLoop("map-settled", mapSettled),
    onLoop("map-settled-100") { mapSettled($0, 100 * $1) },
    onLoop("then-settled", thenSettled),
    onLoop("then-settled-100") { thenSettled($0, 100 * $1) },
    onLoop("then-pending", thenPending),
    onLoop("reject-10", reject10),
    onLoop("when-10") { whenAll($0, 10, $1) },
    onLoop("when-1000") { whenAll($0, 1000, $1) },
    onLoop("race-2") { race($0, 2, $1) },
    onLoop("race-10") { race($0, 10, $1) },
    Workload("hang-timer", run: waitForTimer),
    onLoop("timer-0", startAndCancel),
    Workload("timer-200000", prepare: { _ = crowd }) { n in
        let loop = crowd
        try! loop.submit { startAndCancel(loop, n) }.wait()
    },
    Workload("hop", prepare: { _ = pinnedLoops }, run: pingPong),
    Workload("hop-handlers", prepare: { _ = pinnedLoops }, run: pingPong),
]

func check(_ future: EventLoopFuture<Int>, _ expected: Int) {
    let sum = Sum()
    future.whenSuccess { sum.value = $0 }
    precondition(sum.value == expected)
}

func makeSettle(_ loop: any EventLoop, _ n: Int) {
    var last = loop.makeSucceededFuture(0)
    for i in 1...n {
        let promise = loop.makePromise(of: Int.self)
        promise.succeed(i)
        last = promise.futureResult
        blackHole(last)
    }
    check(last, n)
}

func makeValue(_ loop: any EventLoop, _ n: Int) {
    var last = loop.makeSucceededFuture(0)
    for i in 1...n {
        last = loop.makeSucceededFuture(i)
        blackHole(last)
    }
    check(last, n)
}

func mapPending(_ loop: any EventLoop, _ length: Int, _ n: Int) {
    let step = opaque(1)
    var last = loop.makeSucceededFuture(0)
    for _ in 0..<n {
        let promise = loop.makePromise(of: Int.self)
        last = promise.futureResult
        for _ in 0..<length { last = last.map { $0 &+ step } }
        promise.succeed(0)
        blackHole(last)
    }
    check(last, length)
}

func mapSettled(_ loop: any EventLoop, _ n: Int) {
    let step = opaque(1)
    var last = loop.makeSucceededFuture(0)
    for _ in 0..<n {
        last = loop.makeSucceededFuture(0).map { $0 &+ step }
        blackHole(last)
    }
    check(last, 1)
}

func thenSettled(_ loop: any EventLoop, _ n: Int) {
    let step = opaque(1)
    var last = loop.makeSucceededFuture(0)
    for _ in 0..<n {
        last = loop.makeSucceededFuture(0).flatMap { loop.makeSucceededFuture($0 &+ step) }
        blackHole(last)
    }
    check(last, 1)
}

func thenPending(_ loop: any EventLoop, _ n: Int) {
    var last = loop.makeSucceededFuture(0)
    for _ in 0..<n {
        let outer = loop.makePromise(of: Int.self)
        let inner = loop.makePromise(of: Int.self)
        last = outer.futureResult.flatMap { _ in inner.futureResult }
        outer.futureResult.whenSuccess { inner.succeed($0) }
        outer.succeed(1)
        blackHole(last)
    }
    check(last, 1)
}

func reject10(_ loop: any EventLoop, _ n: Int) {
    let step = opaque(1)
    let caught = Sum()
    for _ in 0..<n {
        let promise = loop.makePromise(of: Int.self)
        var last = promise.futureResult
        for _ in 0..<10 { last = last.map { $0 &+ step } }
        last.whenFailure { _ in caught.value += 1 }
        promise.fail(Failure())
    }
    precondition(caught.value == n)
}

func whenAll(_ loop: any EventLoop, _ count: Int, _ n: Int) {
    let sum = Sum()
    for _ in 0..<n {
        let promises = (0..<count).map { _ in loop.makePromise(of: Int.self) }
        let all = EventLoopFuture.whenAllSucceed(promises.map(\.futureResult), on: loop)
        all.whenSuccess { sum.value &+= $0.count }
        for promise in promises { promise.succeed(1) }
    }
    precondition(sum.value == n * count)
}

/// NIO has no race: all contenders settle one promise, and the first of them has an effect.
func race(_ loop: any EventLoop, _ count: Int, _ n: Int) {
    let sum = Sum()
    for _ in 0..<n {
        let promises = (0..<count).map { _ in loop.makePromise(of: Int.self) }
        let first = loop.makePromise(of: Int.self)
        for promise in promises { promise.futureResult.cascade(to: first) }
        first.futureResult.whenSuccess { sum.value &+= $0 }
        for promise in promises { promise.succeed(1) }
    }
    precondition(sum.value == n)
}
