import Promises
import Workload

let recursion: [Workload] = [
    Workload("recursion") { try! hang(descend($0)) },
    Workload("recursion-after") { hang(descendByTimer($0)) },
]

let queueing: [Workload] = [
    Workload("recursion") { n in
        let (end, resolver) = Promise<Void>.pending()
        _ = queue(n, resolver)
        try! hang(end)
    },
    Workload("recursion-after") { n in
        let (end, resolve) = Guarantee<Void>.pending()
        _ = queueByTimer(n, resolve)
        hang(end)
    },
]

/// Each step's promise settles as the next step's does.
func descend(_ left: Int) -> Promise<Void> {
    Promise.value(left).then { left in left == 0 ? .value : descend(left - 1) }
}

/// The same, but each step's promise has settled before the next step begins.
func queue(_ left: Int, _ end: Resolver<Void>) -> Promise<Void> {
    Promise.value(left).then { left -> Promise<Void> in
        if left == 0 { end.fulfill() } else { _ = queue(left - 1, end) }
        return .value
    }
}

func descendByTimer(_ left: Int) -> Guarantee<Void> {
    after(.zero).then { left == 0 ? .value : descendByTimer(left - 1) }
}

func queueByTimer(_ left: Int, _ end: @escaping @Sendable (()) -> Void) -> Guarantee<Void> {
    after(.zero).then {
        if left == 0 { end(()) } else { _ = queueByTimer(left - 1, end) }
        return .value
    }
}
