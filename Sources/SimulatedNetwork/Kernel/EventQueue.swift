/// Future events by simulated time, such as a packet's arrival or a time-out. Simultaneous events keep the order of
/// addition.
struct EventQueue {
    private struct Event {
        let moment: Int64
        let number: Int
        /// The closure's index in `bodies`, so moving an event in the heap counts no references.
        let place: Int

        func isBefore(_ other: Event) -> Bool { (moment, number) < (other.moment, other.number) }
    }

    private var heap: [Event] = []
    private var added = 0
    private var bodies: [(() -> Void)?] = []
    private var freePlaces: [Int] = []

    var nextMoment: Int64? { heap.first?.moment }

    mutating func add(at moment: Int64, _ body: @escaping () -> Void) {
        added += 1
        let place = freePlaces.popLast() ?? bodies.count
        if place == bodies.count { bodies.append(body) } else { bodies[place] = body }
        let event = Event(moment: moment, number: added, place: place)
        var hole = heap.count
        heap.append(event)
        while hole > 0, moment < heap[(hole - 1) / 2].moment {
            heap[hole] = heap[(hole - 1) / 2]
            hole = (hole - 1) / 2
        }
        heap[hole] = event
    }

    mutating func takeDue(at now: Int64) -> (() -> Void)? {
        guard let first = heap.first, first.moment <= now else { return nil }
        let last = heap.removeLast()
        var hole = 0
        while 2 * hole + 1 < heap.count {
            var child = 2 * hole + 1
            if child + 1 < heap.count, heap[child + 1].isBefore(heap[child]) { child += 1 }
            guard heap[child].isBefore(last) else { break }
            heap[hole] = heap[child]
            hole = child
        }
        if !heap.isEmpty { heap[hole] = last }
        freePlaces.append(first.place)
        return bodies[first.place].take()
    }
}
