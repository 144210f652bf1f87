import Promises
import Reactor

/// The open connections of a tracker, or of a listener's refused clients, each in a reusable place. Every operation but
/// `all` takes constant time. An insertion allocates only when more connections are open than ever before.
struct OpenConnections {
    struct Entry {
        let connection: Connection
        /// The core that waits for the handler's promise, or the promise of an async handler's task.
        var work: PromiseCore?
        /// True when the handler has finished and the descriptor is still open.
        var lingers = false
        /// See `InspectedObjects.second`.
        let since = InspectedObjects.second
    }

    private var entries: ContiguousArray<Entry?> = []
    private var free: ContiguousArray<Int> = []
    private(set) var lingeringCount = 0
    /// Lingering connections that have not been evicted, the longest lingering first.
    private var candidates = LinkedOrder<Connection>()

    var count: Int { entries.count - free.count }
    var unevictedCount: Int { candidates.count }

    var all: [Entry] { entries.compactMap(\.self) }

    subscript(place: Int) -> Connection? { entries[place]?.connection }

    /// The number of places, for an observer that visits a few at a time.
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

    /// - Returns: the entry. The caller releases it.
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

    /// Returns the longest lingering connection, for the caller to close at once.
    mutating func evictOldest() -> Connection? { candidates.popFirst() }
}
