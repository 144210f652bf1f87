import NIOCore
import NIOPosix
import Workload

let isolatedRows: [Workload] = [
    onLoop("map-pending-1") { isolatedMapPending($0, 1, $1) },
    onLoop("map-pending-10") { isolatedMapPending($0, 10, $1) },
    onLoop("map-pending-1000") { isolatedMapPending($0, 1000, $1) },
    onLoop("map-settled", isolatedMapSettled),
    onLoop("map-settled-100") { isolatedMapSettled($0, 100 * $1) },
    onLoop("then-settled", isolatedThenSettled),
    onLoop("then-settled-100") { isolatedThenSettled($0, 100 * $1) },
    onLoop("reject-10", isolatedReject10),
    onLoop("timer-0", isolatedStartAndCancel),
]

func isolatedMapPending(_ loop: any EventLoop, _ length: Int, _ n: Int) {
    let step = opaque(1)
    var last = loop.makeSucceededFuture(0).assumeIsolated()
    for _ in 0..<n {
        let promise = loop.makePromise(of: Int.self).assumeIsolated()
        last = promise.nonisolated().futureResult.assumeIsolated()
        for _ in 0..<length { last = last.map { $0 &+ step } }
        promise.succeed(0)
        blackHole(last)
    }
    check(last.nonisolated(), length)
}

func isolatedMapSettled(_ loop: any EventLoop, _ n: Int) {
    let step = opaque(1)
    let loop = loop.assumeIsolated()
    var last = loop.makeSucceededFuture(0).assumeIsolated()
    for _ in 0..<n {
        last = loop.makeSucceededFuture(0).assumeIsolated().map { $0 &+ step }
        blackHole(last)
    }
    check(last.nonisolated(), 1)
}

func isolatedThenSettled(_ loop: any EventLoop, _ n: Int) {
    let step = opaque(1)
    let loop = loop.assumeIsolated()
    var last = loop.makeSucceededFuture(0).assumeIsolated()
    for _ in 0..<n {
        last = loop.makeSucceededFuture(0).assumeIsolated().flatMap { loop.makeSucceededFuture($0 &+ step) }
        blackHole(last)
    }
    check(last.nonisolated(), 1)
}

func isolatedReject10(_ loop: any EventLoop, _ n: Int) {
    let step = opaque(1)
    var caught = 0
    for _ in 0..<n {
        let promise = loop.makePromise(of: Int.self)
        var last = promise.futureResult.assumeIsolated()
        for _ in 0..<10 { last = last.map { $0 &+ step } }
        last.whenFailure { _ in caught += 1 }
        promise.fail(Failure())
    }
    precondition(caught == n)
}
