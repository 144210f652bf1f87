import Promises
import Workload

let waiting: [Workload] = [
    Workload("hang-settled", run: hangSettled),
    Workload("hang-timer", run: hangTimer),
]

func hangSettled(_ n: Int) {
    let promise = Promise.value(opaque(1))
    var sum = 0
    for _ in 0..<n { sum &+= try! hang(promise) }
    precondition(sum == n)
}

/// A timer that is due at once, so that the round trip is measured and not the delay.
func hangTimer(_ n: Int) {
    var sum = 0
    for _ in 0..<n {
        hang(after(.zero))
        sum &+= 1
    }
    precondition(sum == n)
}
