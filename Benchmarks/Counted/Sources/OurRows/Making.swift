import Promises
import Workload

let making: [Workload] = [
    Workload("make-settle", run: makeSettle),
    Workload("make-keep-settle", run: makeKeepSettle),
    Workload("value", run: makeValue),
]

func makeSettle(_ n: Int) {
    var last = Promise.value(0)
    for i in 1...n {
        let (promise, resolver) = Promise<Int>.pending()
        resolver.fulfill(i)
        last = promise
        blackHole(last)
    }
    precondition(last.settledValue == n)
}

/// The resolver escapes the function, as it does wherever a program waits for something.
func makeKeepSettle(_ n: Int) {
    var last = Promise.value(0)
    for i in 1...n {
        let (promise, resolver) = Promise<Int>.pending()
        blackHole(resolver)
        resolver.fulfill(i)
        last = promise
        blackHole(last)
    }
    precondition(last.settledValue == n)
}

func makeValue(_ n: Int) {
    var last = Promise.value(0)
    for i in 1...n {
        last = .value(i)
        blackHole(last)
    }
    precondition(last.settledValue == n)
}
