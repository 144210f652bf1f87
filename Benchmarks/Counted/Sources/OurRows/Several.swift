import Promises
import Workload

let several: [Workload] = [
    Workload("when-10") { whenAll(10, $0) },
    Workload("when-1000") { whenAll(1000, $0) },
    Workload("race-2") { raceOf(2, $0) },
    Workload("race-10") { raceOf(10, $0) },
    Workload("cancel-shared", run: cancelShared),
]

func whenAll(_ count: Int, _ n: Int) {
    var sum = 0
    for _ in 0..<n {
        let pairs = (0..<count).map { _ in Promise<Int>.pending() }
        let all = when(fulfilled: pairs.map { $0.promise })
        for pair in pairs { pair.resolver.fulfill(1) }
        sum &+= try! hang(all).count
    }
    precondition(sum == n * count)
}

func raceOf(_ count: Int, _ n: Int) {
    var sum = 0
    for _ in 0..<n {
        let pairs = (0..<count).map { _ in Promise<Int>.pending() }
        let first = race(pairs.map { $0.promise })
        for pair in pairs { pair.resolver.fulfill(1) }
        sum &+= try! hang(first)
    }
    precondition(sum == n)
}

/// A cancellation through 500 levels, each of two branches of one promise.
func cancelShared(_ n: Int) {
    for _ in 0..<n {
        let (work, resolver) = Promise<Int>.pending()
        var last = work
        for _ in 0..<500 { last = when(fulfilled: last.map { $0 }, last.map { $0 }).map { $0.0 } }
        last.cancel()
        precondition((try? hang(last)) == nil && work.isCancelled)
        withExtendedLifetime(resolver) {}
    }
}
