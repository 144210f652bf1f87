import Promises
import Reactor

/// The open connections of a tracker, or of the refused clients of a listener, each in a place, which is reused. Every
/// operation but `all` takes constant time, and an insertion allocates nothing unless there are more connections than
/// ever before.
struct OpenConnections {
    struct Entry {
        let connection: Connection
        /// The work that ends with it: the core that waits for the handler's promise, or the task of an async handler.
        var work: PromiseCore?
        /// Whether its handler has finished, and its descriptor is not closed yet.
        var lingers = false
        /// See `InspectedObjects.second`.
        let since = InspectedObjects.second
    }

    private var entries: ContiguousArray<Entry?> = []
    private var free: ContiguousArray<Int> = []
    private(set) var lingeringCount = 0
    /// Lingering connections that have not been evicted, in the order in which they began to linger.
    private var candidates = LinkedOrder<Connection>()

    var count: Int { entries.count - free.count }
    var unevictedCount: Int { candidates.count }

    /// The connections that are open now.
    var all: [Entry] { entries.compactMap(\.self) }

    subscript(place: Int) -> Connection? { entries[place]?.connection }

    /// The entries by place, for an observer that looks at a few at a time.
    var places: Int { entries.count }
    func entry(_ place: Int) -> Entry? { entries[place] }

    mutating func insert(_ connection: Connection) -> Int {
        if let place = free.popLast() {
            entries[place] = Entry(connection: connection)
            return place
        }
        entries.append(Entry(connection: connection))
        return entries.count - 1
    }

    mutating func setWork(_ work: PromiseCore, at place: Int) { entries[place]?.work = work }

    /// - Returns: the entry, for the caller to release.
    mutating func remove(_ place: Int) -> Entry? {
        free.append(place)
        let entry = entries[place].take()
        if entry?.lingers == true {
            lingeringCount -= 1
            candidates.remove(place)
        }
        return entry
    }

    // MARK: Lingering

    mutating func beginLingering(_ place: Int) {
        guard let connection = self[place] else { return }
        entries[place]?.lingers = true
        lingeringCount += 1
        candidates.append(connection, place)
    }

    /// The connection that has lingered longest. Its close is cut short, and its descriptor is about to be closed: from
    /// now on it is not a candidate.
    mutating func evictOldest() -> Connection? { candidates.popFirst() }
}
