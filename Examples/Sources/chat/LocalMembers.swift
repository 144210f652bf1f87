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

    /// Waits for no client. One for which too much is queued is reset, which ends its session.
    func deliver(_ line: String, to room: String) {
        guard let connections = rooms[room]?.values else { return }
        broadcast("\(line)\n".utf8, to: connections, onOverflow: .abort)
    }
}
