/// Elements in insertion order, found and removed by number in logarithmic time. Numbers are never reused.
struct NumberedList<Element> {
    /// Ascending by number. Removed entries remain with a `nil` element until they are the majority.
    private var entries: [(number: Int, element: Element?)] = []
    private var last = 0
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    /// - Returns: a number, never zero.
    mutating func add(_ element: Element) -> Int {
        last += 1
        entries.append((last, element))
        count += 1
        return last
    }

    subscript(_ number: Int) -> Element? { index(of: number).flatMap { entries[$0].element } }

    mutating func remove(_ number: Int) -> Element? {
        guard let index = index(of: number), let removed = entries[index].element.take() else { return nil }
        count -= 1
        if count * 2 <= entries.count { entries.removeAll { $0.element == nil } }
        return removed
    }

    /// Returns the elements, for the caller to release once the list is consistent.
    mutating func removeAll() -> [Element] {
        let removed = elements
        entries = []
        count = 0
        return removed
    }

    var all: some Sequence<(number: Int, element: Element)> {
        entries.lazy.compactMap { entry in entry.element.map { (entry.number, $0) } }
    }

    var elements: [Element] { entries.compactMap(\.element) }

    private func index(of number: Int) -> Int? {
        var (low, high) = (0, entries.count)
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].number < number { low = middle + 1 } else { high = middle }
        }
        return low < entries.count && entries[low].number == number ? low : nil
    }
}
