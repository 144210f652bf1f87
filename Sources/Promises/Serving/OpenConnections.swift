/// The open connections of `serve` on one loop, each in a place, which is reused. Every operation takes constant time,
/// and an insertion allocates nothing unless there are more connections than ever before.
struct OpenConnections {
    /// A connection, and the work that ends with it: the core that waits for the handler's promise, or the task of an
    /// async handler.
    typealias Entry = (connection: Connection, work: PromiseCore?)

    private var entries: ContiguousArray<Entry?> = []
    private var free: ContiguousArray<Int> = []
    /// The places of lingering connections: their handlers have finished, and their descriptors are not closed yet.
    private var lingering: Set<Int> = []
    /// Connections that have not been evicted, in the order in which they began to linger.
    private var candidates = LinkedOrder()

    var count: Int { entries.count - free.count }
    var lingeringCount: Int { lingering.count }
    var unevictedCount: Int { candidates.count }

    /// The connections that are open now, with their places.
    var all: [(place: Int, connection: Connection, work: PromiseCore?)] {
        entries.indices.compactMap { place in entries[place].map { (place, $0.connection, $0.work) } }
    }

    subscript(place: Int) -> Connection? { entries[place]?.connection }

    mutating func insert(_ connection: Connection) -> Int {
        if let place = free.popLast() {
            entries[place] = (connection, nil)
            return place
        }
        entries.append((connection, nil))
        return entries.count - 1
    }

    mutating func setWork(_ work: PromiseCore, at place: Int) { entries[place]?.work = work }

    /// - Returns: the entry, for the caller to release.
    mutating func remove(_ place: Int) -> Entry? {
        if !lingering.isEmpty, lingering.remove(place) != nil { candidates.remove(place) }
        free.append(place)
        return entries[place].take()
    }

    // MARK: Lingering

    func lingers(_ place: Int) -> Bool { lingering.contains(place) }

    mutating func beginLingering(_ place: Int) {
        lingering.insert(place)
        candidates.append(place)
    }

    /// The connection that has lingered longest. Its close is cut short, and its descriptor is about to be closed: from
    /// now on it is not a candidate.
    mutating func evictOldest() -> Connection? { candidates.popFirst().flatMap { self[$0] } }
}
