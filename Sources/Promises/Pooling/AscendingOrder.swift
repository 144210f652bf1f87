/// Numbers that come in any order, of which the smallest is next and any one can be removed, in logarithmic time: a binary
/// heap.
struct AscendingOrder {
    // Also has numbers that were removed, at most as many as members, and never as the first.
    private var heap: [Int] = []
    private var members: Set<Int> = []

    var count: Int { members.count }
    var isEmpty: Bool { members.isEmpty }
    var first: Int? { heap.first }

    /// Adds `number`, which must not be a member.
    mutating func insert(_ number: Int) {
        members.insert(number)
        var place = heap.count
        heap.append(number)
        while place > 0, heap[(place - 1) / 2] > number {
            heap[place] = heap[(place - 1) / 2]
            place = (place - 1) / 2
        }
        heap[place] = number
    }

    mutating func remove(_ number: Int) {
        guard members.remove(number) != nil else { return }
        while let first = heap.first, !members.contains(first) { removeFirst() }
        if heap.count > 2 * members.count { heap = members.sorted() }
    }

    private mutating func removeFirst() {
        let moved = heap.removeLast()
        if heap.isEmpty { return }
        var place = 0
        while true {
            var child = 2 * place + 1
            if child + 1 < heap.count, heap[child + 1] < heap[child] { child += 1 }
            guard child < heap.count, heap[child] < moved else { break }
            heap[place] = heap[child]
            place = child
        }
        heap[place] = moved
    }
}
