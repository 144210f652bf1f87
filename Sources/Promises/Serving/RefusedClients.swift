extension ServeOptions {
    /// The treatment of a client beyond `maxConnections`.
    public enum Overflow: Hashable, Sendable {
        /// It waits in the kernel's backlog until a connection has ended.
        case wait
        /// It is accepted, receives these bytes, and is closed as by `Connection.close`; no handler is called. With TLS
        /// the bytes would precede the handshake: pass none.
        case refuse([UInt8])

        /// Like the form with bytes, with a text in UTF-8.
        public static func refuse(_ text: String) -> Overflow { .refuse(Array(text.utf8)) }
    }
}

/// The clients that a listener has refused, until their connections are closed. On the listener's loop.
final class RefusedClients {
    /// How many there have been.
    private(set) var total = 0
    private var connections = OpenConnections()

    /// - Parameter limit: how many connections may linger. One more ends the one that has lingered longest.
    func take(_ connection: Connection, _ answer: [UInt8], limit: Int) {
        total += 1
        // The kernel has room for a new connection's output, unless the answer is very long.
        connection.post(answer, overflow: .drop)
        let closed = connection.close()
        guard connection.lifecycle.hasDescriptor else { return }
        let place = connections.insert(connection)
        connections.beginLingering(place)
        closed.done { [self] in _ = connections.remove(place) }
        if connections.unevictedCount > limit { connections.evictOldest()?.close(linger: .zero) }
    }

    func end() { for entry in connections.all { entry.connection.close(linger: .zero) } }
}
