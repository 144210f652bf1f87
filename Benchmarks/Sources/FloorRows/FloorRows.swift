import Workload

/// Roughly the minimum cost of a promise's step in Swift: one object that holds a value and a closure, and one call of
/// that closure. No state, no list, no queue, no errors.
public let all: [Workload] = [
    Workload("make-settle", run: make),
    Workload("value", run: make),
    Workload("map-pending-1") { chain(1, $0) },
    Workload("map-pending-10") { chain(10, $0) },
    Workload("map-pending-1000") { chain(1000, $0) },
    Workload("map-settled") { chain(1, $0) },
    Workload("then-settled") { chain(2, $0) },
    Workload("hang-settled", run: call),
]

final class Box {
    var value: Int
    var body: ((Int) -> Int)?
    var next: Box?

    init(_ value: Int) { self.value = value }
}

func make(_ n: Int) {
    var last = Box(0)
    for i in 1...n {
        last = Box(i)
        blackHole(last)
    }
    precondition(last.value == n)
}

func chain(_ length: Int, _ n: Int) {
    let step = opaque(1)
    var sum = 0
    for _ in 0..<n {
        var first: Box?
        for _ in 0..<length {
            let box = Box(0)
            box.body = { $0 &+ step }
            box.next = first
            // Without this, objects that do not escape would be allocated on the stack.
            blackHole(box)
            first = box
        }
        var value = 0
        while let box = first {
            value = box.body!(value)
            box.value = value
            first = box.next
        }
        sum &+= value
    }
    precondition(sum == n * length)
}

@inline(never)
func plus(_ value: Int, _ step: Int) -> Int { value &+ step }

func call(_ n: Int) {
    let step = opaque(1)
    var sum = 0
    for _ in 0..<n {
        sum = plus(sum, step)
        blackHole(sum)
    }
    precondition(sum == n)
}
