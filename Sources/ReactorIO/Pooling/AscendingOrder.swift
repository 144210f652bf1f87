protocol Numbered: AnyObject {
    var number: Int { get }
    /// The index in the order; `nil` if in none. Only the order changes it.
    var place: Int? { get set }
}

/// A binary heap of objects, smallest number first. Any object can be removed in logarithmic time. An object belongs to
/// at most one order.
struct AscendingOrder<Element: Numbered> {
    private var heap: [Element] = []

    var count: Int { heap.count }
    var isEmpty: Bool { heap.isEmpty }
    var first: Element? { heap.first }

    /// Adds `element`, which must not be a member.
    mutating func insert(_ element: Element) {
        heap.append(element)
        rise(element, from: heap.count - 1)
    }

    mutating func remove(_ element: Element) {
        guard let place = element.place else { return }
        element.place = nil
        let last = heap.removeLast()
        if last !== element { sink(last, from: rise(last, from: place)) }
    }

    @discardableResult
    private mutating func rise(_ element: Element, from start: Int) -> Int {
        var place = start
        while place > 0, heap[(place - 1) / 2].number > element.number {
            put(heap[(place - 1) / 2], at: place)
            place = (place - 1) / 2
        }
        put(element, at: place)
        return place
    }

    private mutating func sink(_ element: Element, from start: Int) {
        var place = start
        while true {
            var child = 2 * place + 1
            if child + 1 < heap.count, heap[child + 1].number < heap[child].number { child += 1 }
            guard child < heap.count, heap[child].number < element.number else { break }
            put(heap[child], at: place)
            place = child
        }
        put(element, at: place)
    }

    private mutating func put(_ element: Element, at place: Int) {
        heap[place] = element
        element.place = place
    }
}
