/// The open connections of `serve`. Places are reused, so an insertion allocates nothing unless there are more
/// connections than ever before.
struct RunningConnections {
    struct OpenConnection {
        let connection: Connection
        /// What a drain cancels at its deadline: the core that waits for the handler's promise, or the task of an async
        /// handler.
        var work: PromiseCore?
    }

    private var entries: ContiguousArray<OpenConnection?> = []
    private var free: ContiguousArray<Int> = []

    var count: Int { entries.count - free.count }

    /// The connections that are open now, with their places.
    var all: [(place: Int, connection: Connection, work: PromiseCore?)] {
        entries.indices.compactMap { place in entries[place].map { (place, $0.connection, $0.work) } }
    }

    mutating func insert(_ connection: Connection) -> Int {
        if let place = free.popLast() {
            entries[place] = OpenConnection(connection: connection)
            return place
        }
        entries.append(OpenConnection(connection: connection))
        return entries.count - 1
    }

    mutating func remove(_ place: Int) -> OpenConnection? {
        free.append(place)
        return entries[place].take()
    }

    subscript(place: Int) -> OpenConnection? {
        get { entries[place] }
        set { entries[place] = newValue }
    }
}
