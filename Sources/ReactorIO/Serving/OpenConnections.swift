import Promises
import Reactor

/// The open connections of a tracker, or of a listener's refused clients, each in a reusable place. Every operation but
/// `all` takes constant time, and an insertion allocates only for more connections than ever before.
struct OpenConnections {
    struct Entry {
        let connection: Connection
        /// The core that waits for the handler's promise, or the task of an async handler.
        var work: PromiseCore?
        /// True when its handler has finished, and its descriptor is still open.
        var lingers = false
        /// See `InspectedObjects.second`.
        let since = InspectedObjects.second
    }

    private var entries: ContiguousArray<Entry?> = []
    private var free: ContiguousArray<Int> = []
    private(set) var lingeringCount = 0
    /// Lingering connections that have not been evicted, longest first.
    private var candidates = LinkedOrder<Connection>()

    var count: Int { entries.count - free.count }
    var unevictedCount: Int { candidates.count }

    var all: [Entry] { entries.compactMap(\.self) }

    subscript(place: Int) -> Connection? { entries[place]?.connection }

    /// The number of entries, for an observer that visits a few at a time.
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

    /// Returns the longest lingering connection, whose close is cut short.
    mutating func evictOldest() -> Connection? { candidates.popFirst() }
}
