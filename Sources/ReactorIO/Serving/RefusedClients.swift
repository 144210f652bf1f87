import Promises

extension Server {
    /// Sends `answer` to a client beyond the limit, and closes its connection. If too many linger, closes the longest
    /// lingering one at once.
    func refuse(_ connection: Connection, _ answer: [UInt8]) {
        counts.countRefused()
        // The kernel has room for all but a very long answer.
        connection.post(answer, overflow: .drop)
        let closed = connection.close()
        guard connection.lifecycle.hasDescriptor else { return }
        let place = refused.insert(connection)
        refused.beginLingering(place)
        closed.done { [self] in _ = refused.remove(place) }
        if refused.unevictedCount > options.lingeringLimit() { refused.evictOldest()?.close(linger: .zero) }
    }

    func endRefused() { for entry in refused.all { entry.connection.close(linger: .zero) } }
}
