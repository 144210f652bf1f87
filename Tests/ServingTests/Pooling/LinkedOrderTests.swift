import TestSupport
import Testing

@testable import Promises
@testable import PromisesTestSupport

@Suite struct LinkedOrderTests {
    @Test func itAgreesWithAnArray() {
        var random = SplitMix64(7)
        var order = LinkedOrder()
        var array: [Int] = []
        var next = 0
        for _ in 0..<20_000 {
            switch random.below(5) {
            case 0, 1:
                order.append(next)
                array.append(next)
                next += 1
            case 2:
                let number = random.below(next + 1)
                let index = array.firstIndex(of: number)
                if let index { array.remove(at: index) }
                expectEqual(order.remove(number), (index != nil))
            case 3: expectEqual(order.popFirst(), (array.isEmpty ? nil : array.removeFirst()))
            default: expectEqual(order.takeLast(), array.popLast())
            }
            expect(order.first == array.first && order.last == array.last && order.count == array.count)
        }
    }
}
