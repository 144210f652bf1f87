import Promises

/// The subscribers of each channel.
final class Channels {
    private var subscribers: [Key: [ObjectIdentifier: Session]] = [:]

    func add(_ session: Session, to channel: Key) {
        subscribers[channel, default: [:]][ObjectIdentifier(session)] = session
    }

    func remove(_ session: Session, from channel: Key) {
        subscribers[channel]?[ObjectIdentifier(session)] = nil
        if subscribers[channel]?.isEmpty == true { subscribers[channel] = nil }
    }

    /// Sends a message to all subscribers of a channel. Nothing waits for them: a subscriber for which too much is queued
    /// is reset, which ends its session.
    /// - Returns: the number of subscribers.
    func publish(_ message: [UInt8], to channel: Key) -> Int {
        guard let sessions = subscribers[channel] else { return 0 }
        let reply = Reply.push([.bulk("message"), .bulk(channel.bytes), .bulk(message)])
        for version in [ProtocolVersion.resp2, .resp3] {
            let readers = sessions.values.lazy.filter { $0.version == version }.map(\.connection)
            broadcast(reply.bytes(version), to: readers, overflow: .abort)
        }
        return sessions.count
    }
}

extension Session {
    /// `PUBLISH channel message`
    func publish(_ request: Request) -> Reply {
        .integer(server.channels.publish(request[2], to: Key(request[1])))
    }

    /// `SUBSCRIBE channel…`
    func subscribe(to channels: some Sequence<[UInt8]>) -> Reply {
        // A subscriber may be silent for as long as it likes.
        connection.idleTimeout = nil
        return .sequence(
            channels.map { name in
                let channel = Key(name)
                subscriptions.insert(channel)
                server.channels.add(self, to: channel)
                return .push([.bulk("subscribe"), .bulk(name), .integer(subscriptions.count)])
            })
    }

    /// `UNSUBSCRIBE channel…`
    func unsubscribe(from channels: some Sequence<[UInt8]>) -> Reply {
        let replies = channels.map { name -> Reply in
            let channel = Key(name)
            subscriptions.remove(channel)
            server.channels.remove(self, from: channel)
            return .push([.bulk("unsubscribe"), .bulk(name), .integer(subscriptions.count)])
        }
        if subscriptions.isEmpty { connection.idleTimeout = server.limits.idle }
        return .sequence(replies)
    }

    /// `UNSUBSCRIBE` without channels, and the end of a session: ends all subscriptions.
    @discardableResult
    func unsubscribe() -> Reply {
        if subscriptions.isEmpty { return .push([.bulk("unsubscribe"), .bulk(nil), .integer(0)]) }
        return unsubscribe(from: subscriptions.map(\.bytes))
    }
}
