/// The connections of a listener on one loop whose handlers have finished and whose descriptors are not closed yet, by
/// their places in `RunningConnections`. Every operation takes constant time.
struct LingeringConnections {
    private var places: Set<Int> = []
    /// Those that have not been evicted, in the order in which they began to linger.
    private var candidates = LinkedOrder()

    var count: Int { places.count }
    var unevictedCount: Int { candidates.count }

    func contains(_ place: Int) -> Bool { places.contains(place) }

    mutating func insert(_ place: Int) {
        places.insert(place)
        candidates.append(place)
    }

    /// The place of the connection that has lingered longest. Its close is cut short, and its descriptor is about to be closed:
    /// from now on it is no candidate.
    mutating func evictOldest() -> Int? { candidates.popFirst() }

    mutating func remove(_ place: Int) {
        if !places.isEmpty, places.remove(place) != nil { candidates.remove(place) }
    }
}
