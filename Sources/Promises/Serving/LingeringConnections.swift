/// The connections of a listener on one loop whose handlers have finished and whose descriptors are not closed yet, by
/// their places in `RunningConnections` and in the order in which they began to linger. Every operation takes constant
/// time.
struct LingeringConnections {
    private struct Node {
        var older: Int?
        var newer: Int?
        /// Its close has been cut short, and its descriptor is about to be closed.
        var isEvicted = false
    }

    private var nodes: [Int: Node] = [:]
    private var oldest: Int?
    private var newest: Int?
    /// How many connections have not been evicted.
    private(set) var unevictedCount = 0

    /// How many connections there are, including evicted ones.
    var count: Int { nodes.count }

    func contains(_ place: Int) -> Bool { nodes[place] != nil }

    mutating func insert(_ place: Int) {
        nodes[place] = Node(older: newest, newer: nil)
        if let newest { nodes[newest]?.newer = place } else { oldest = place }
        newest = place
        unevictedCount += 1
    }

    /// The place of the connection that has lingered longest, which is no longer a candidate from now on.
    mutating func evictOldest() -> Int? {
        guard let place = oldest, let node = nodes[place] else { return nil }
        unlink(node)
        nodes[place] = Node(isEvicted: true)
        return place
    }

    /// - Returns: whether the connection at `place` was lingering.
    @discardableResult
    mutating func remove(_ place: Int) -> Bool {
        guard let node = nodes.removeValue(forKey: place) else { return false }
        if !node.isEvicted { unlink(node) }
        return true
    }

    private mutating func unlink(_ node: Node) {
        unevictedCount -= 1
        if let older = node.older { nodes[older]?.newer = node.newer } else { oldest = node.newer }
        if let newer = node.newer { nodes[newer]?.older = node.older } else { newest = node.older }
    }
}
