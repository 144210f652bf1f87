import Promises
import Workload

let chains: [Workload] = [
    Workload("map-pending-1") { mapPending(1, $0) },
    Workload("map-pending-10") { mapPending(10, $0) },
    Workload("map-pending-1000") { mapPending(1000, $0) },
    Workload("map-loop-10", run: mapLoop),
    Workload("map-settled", run: mapSettled),
    Workload("map-settled-100", run: mapSettled100),
    Workload("then-settled", run: thenSettled),
    Workload("then-settled-100", run: thenSettled100),
    Workload("then-pending", run: thenPending),
    Workload("reject-10", run: reject10),
]

struct Failure: Error {}

// `hang` drives the loop here: the handlers are jobs in its queue.

func mapPending(_ length: Int, _ n: Int) {
    let step = opaque(1)
    var sum = 0
    for _ in 0..<n {
        let (first, resolver) = Promise<Int>.pending()
        var last = first
        for _ in 0..<length { last = last.map { $0 &+ step } }
        resolver.fulfill(0)
        sum &+= try! hang(last)
    }
    precondition(sum == n * length)
}

/// A chain as a program may build it: in a loop, with steps and closures known only at run time.
func mapLoop(_ n: Int) {
    let length = opaque(10)
    let step = opaque(1)
    let counter = Counter()
    var sum = 0
    for _ in 0..<n {
        let (first, resolver) = Promise<Int>.pending()
        var last = first
        for _ in 0..<length {
            last = last.map { value in
                counter.calls &+= 1
                return value &+ step
            }
        }
        resolver.fulfill(0)
        sum &+= try! hang(last)
    }
    precondition(sum == n * length && counter.calls == sum)
}

final class Counter { var calls = 0 }

func mapSettled(_ n: Int) {
    let step = opaque(1)
    var sum = 0
    for _ in 0..<n { sum &+= try! hang(Promise.value(0).map { $0 &+ step }) }
    precondition(sum == n)
}

func thenSettled(_ n: Int) {
    let step = opaque(1)
    var sum = 0
    for _ in 0..<n { sum &+= try! hang(Promise.value(0).then { Promise.value($0 &+ step) }) }
    precondition(sum == n)
}

// The loop is driven once per hundred, to measure a handler that creates promises in a running loop.

func mapSettled100(_ n: Int) {
    let step = opaque(1)
    var last = Promise.value(0)
    for _ in 0..<n {
        for _ in 0..<100 {
            last = Promise.value(0).map { $0 &+ step }
            blackHole(last)
        }
        blackHole(try! hang(last))
    }
    precondition(last.settledValue == 1)
}

func thenSettled100(_ n: Int) {
    let step = opaque(1)
    var last = Promise.value(0)
    for _ in 0..<n {
        for _ in 0..<100 {
            last = Promise.value(0).then { Promise.value($0 &+ step) }
            blackHole(last)
        }
        blackHole(try! hang(last))
    }
    precondition(last.settledValue == 1)
}

func thenPending(_ n: Int) {
    var sum = 0
    for _ in 0..<n {
        let (outer, settleOuter) = Promise<Int>.pending()
        let (inner, settleInner) = Promise<Int>.pending()
        let last = outer.then { _ in inner }
        // Attached later, so it runs after the closure above has returned the inner promise, still pending.
        _ = outer.done { settleInner.fulfill($0) }
        settleOuter.fulfill(1)
        sum &+= try! hang(last)
    }
    precondition(sum == n)
}

func reject10(_ n: Int) {
    let step = opaque(1)
    var caught = 0
    for _ in 0..<n {
        let (first, resolver) = Promise<Int>.pending()
        var last = first
        for _ in 0..<10 { last = last.map { $0 &+ step } }
        last.catch { _ in caught += 1 }
        resolver.reject(Failure())
        _ = try? hang(last)
    }
    precondition(caught == n)
}
