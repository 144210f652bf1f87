@testable import Promises
@testable import PromisesTestSupport
@testable import ReactorIO
@testable import ReactorIOTestSupport

struct PoolOrderTests {
    private final class Item: Numbered, Linked {
        let number: Int
        var place: Int?
        private var links = Links<Item>()
        init(_ number: Int) { self.number = number }
        subscript(list: Void) -> Links<Item> {
            get { links }
            set { links = newValue }
        }
    }

    @Test func aListAgreesWithAnArray() {
        var random = SplitMix64(7)
        let list = LinkedList<Item>(())
        let items = (0..<200).map(Item.init)
        var array: [Int] = []
        for _ in 0..<20_000 {
            let number = random.below(items.count)
            let index = array.firstIndex(of: number)
            if let index {
                array.remove(at: index)
                expect(list.remove(items[number]))
            } else if random.once(in: 3) {
                expect(!list.remove(items[number]))
            } else {
                array.append(number)
                list.append(items[number])
            }
            expect(list.first?.number == array.first && list.last?.number == array.last && list.count == array.count)
        }
        expectEqual(list.all.map(\.number), array)
    }

    @Test func aListReleasesWhatIsLeftHoweverLongItIs() {
        weak var witness: Item?
        do {
            let list = LinkedList<Item>(())
            for number in 0..<200_000 {
                let item = Item(number)
                if number == 100_000 { witness = item }
                list.append(item)
            }
        }
        expect(witness == nil)
    }

    @Test func anAscendingOrderAgreesWithASet() {
        var random = SplitMix64(9)
        var order = AscendingOrder<Item>()
        let items = (0..<500).map(Item.init)
        var set: Set<Int> = []
        for step in 0..<20_000 {
            // Numbers recur, and there are at times many, at times few.
            let number = random.below(step % 4000 < 2000 ? 500 : 20)
            if set.insert(number).inserted {
                order.insert(items[number])
            } else {
                set.remove(number)
                order.remove(items[number])
            }
            order.remove(Item(-1))
            expect(order.first?.number == set.min() && order.count == set.count && order.isEmpty == set.isEmpty)
        }
    }
}

struct LinkedOrderTests {
    @Test func itAgreesWithAnArray() {
        var random = SplitMix64(7)
        var order = LinkedOrder<String>()
        var array: [Int] = []
        var next = 0
        for _ in 0..<20_000 {
            switch random.below(4) {
            case 0, 1:
                order.append("\(next)", next)
                array.append(next)
                next += 1
            case 2:
                let number = random.below(next + 1)
                let index = array.firstIndex(of: number)
                if let index { array.remove(at: index) }
                expectEqual(order.remove(number), index.map { _ in "\(number)" })
            default: expectEqual(order.popFirst(), array.isEmpty ? nil : "\(array.removeFirst())")
            }
            expect(order.count == array.count && order.isEmpty == array.isEmpty)
        }
    }
}
