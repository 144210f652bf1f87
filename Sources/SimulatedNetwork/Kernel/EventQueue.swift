/// Future events by simulated time: a packet arrives, a time-out ends. Events at the same moment keep the order in
/// which they were added.
struct EventQueue {
    private struct Event {
        let moment: Int64
        let number: Int
        let body: () -> Void

        func isBefore(_ other: Event) -> Bool { (moment, number) < (other.moment, other.number) }
    }

    private var heap: [Event] = []
    private var added = 0

    var nextMoment: Int64? { heap.first?.moment }

    mutating func add(at moment: Int64, _ body: @escaping () -> Void) {
        added += 1
        heap.append(Event(moment: moment, number: added, body: body))
        var place = heap.count - 1
        while place > 0, heap[place].isBefore(heap[(place - 1) / 2]) {
            heap.swapAt(place, (place - 1) / 2)
            place = (place - 1) / 2
        }
    }

    /// Takes out the next event that is due.
    mutating func takeDue(at now: Int64) -> (() -> Void)? {
        guard let first = heap.first, first.moment <= now else { return nil }
        let last = heap.removeLast()
        if heap.isEmpty { return first.body }
        heap[0] = last
        var place = 0
        while true {
            var child = 2 * place + 1
            guard child < heap.count else { break }
            if child + 1 < heap.count, heap[child + 1].isBefore(heap[child]) { child += 1 }
            guard heap[child].isBefore(heap[place]) else { break }
            heap.swapAt(child, place)
            place = child
        }
        return first.body
    }
}
