/// Numbers in insertion order, any of which can be removed in constant time: a doubly linked list in a dictionary.
///
/// Requests leave the middle of a queue when they are cancelled, and so do idle connections when their peers leave: an
/// array would move its elements each time.
struct LinkedOrder {
    private struct Neighbours {
        var previous: Int?
        var next: Int?
    }

    private var links: [Int: Neighbours] = [:]
    private(set) var first: Int?
    private var last: Int?

    var count: Int { links.count }
    var isEmpty: Bool { links.isEmpty }

    /// Adds `number`, which must not be a member, at the end.
    mutating func append(_ number: Int) {
        links[number] = Neighbours(previous: last)
        if let last { links[last]?.next = number } else { first = number }
        last = number
    }

    /// - Returns: whether `number` was a member.
    @discardableResult
    mutating func remove(_ number: Int) -> Bool {
        guard let removed = links.removeValue(forKey: number) else { return false }
        if let previous = removed.previous { links[previous]?.next = removed.next } else { first = removed.next }
        if let next = removed.next { links[next]?.previous = removed.previous } else { last = removed.previous }
        return true
    }

    mutating func popFirst() -> Int? {
        guard let first else { return nil }
        remove(first)
        return first
    }
}
