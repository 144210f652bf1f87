import Promises

/// The connections of one loop by their rooms. Each loop has an object of its own, so there is neither a lock nor an actor.
final class LocalMembers {
    private var rooms: [String: [ObjectIdentifier: Connection]] = [:]

    func add(_ connection: Connection, to room: String) {
        rooms[room, default: [:]][ObjectIdentifier(connection)] = connection
    }

    func remove(_ connection: Connection, from room: String) {
        rooms[room]?[ObjectIdentifier(connection)] = nil
        if rooms[room]?.isEmpty == true { rooms[room] = nil }
    }

    /// Waits for no client. One for which too much is queued is disconnected, which ends its session. One that is being
    /// closed, by a drain for example, takes no line, but gets what is queued for it.
    func deliver(_ line: String, to room: String) {
        guard let connections = rooms[room]?.values else { return }
        let bytes = Array("\(line)\n".utf8)
        for connection in connections {
            connection.write(bytes).catch { _ in if !connection.isClosed { connection.abort() } }
        }
    }
}
