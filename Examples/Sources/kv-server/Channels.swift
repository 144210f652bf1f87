import Promises
import ReactorIO

/// The subscribers of each channel.
final class Channels {
    private var subscribers: [[UInt8]: [ObjectIdentifier: Session]] = [:]

    func add(_ session: Session, to channel: [UInt8]) {
        subscribers[channel, default: [:]][ObjectIdentifier(session)] = session
    }

    func remove(_ session: Session, from channel: [UInt8]) {
        subscribers[channel]?[ObjectIdentifier(session)] = nil
        if subscribers[channel]?.isEmpty == true { subscribers[channel] = nil }
    }

    /// Sends a message to all subscribers of a channel, without waiting for them: a subscriber whose queue exceeds the
    /// limit is reset, which ends its session.
    /// - Returns: the number of subscribers.
    func publish(_ message: [UInt8], to channel: [UInt8]) -> Int {
        guard let sessions = subscribers[channel] else { return 0 }
        let reply = Reply.push([.bulk("message"), .bulk(channel), .bulk(message)])
        for version in [ProtocolVersion.resp2, .resp3] {
            let readers = sessions.values.lazy.filter { $0.version == version }.map(\.connection)
            var bytes = ByteWriter()
            reply.append(to: &bytes, version)
            broadcast(bytes.bytes, to: readers, overflow: .abort)
        }
        return sessions.count
    }
}

extension Session {
    /// `PUBLISH channel message`
    func publish(_ words: [[UInt8]]) -> Reply { .integer(server.channels.publish(words[1], to: words[0])) }

    /// `SUBSCRIBE channel…`
    func subscribe(to channels: some Sequence<[UInt8]>) -> Reply {
        // A subscriber may be idle for any time.
        connection.idleTimeout = nil
        return .sequence(
            channels.map { channel in
                subscriptions.insert(channel)
                server.channels.add(self, to: channel)
                return .push([.bulk("subscribe"), .bulk(channel), .integer(subscriptions.count)])
            })
    }

    /// `UNSUBSCRIBE channel…`
    func unsubscribe(from channels: some Sequence<[UInt8]>) -> Reply {
        let replies = channels.map { channel -> Reply in
            subscriptions.remove(channel)
            server.channels.remove(self, from: channel)
            return .push([.bulk("unsubscribe"), .bulk(channel), .integer(subscriptions.count)])
        }
        if subscriptions.isEmpty { connection.idleTimeout = server.limits.idle }
        return .sequence(replies)
    }

    /// `UNSUBSCRIBE` without channels, and the end of a session: ends all subscriptions.
    @discardableResult
    func unsubscribe() -> Reply {
        if subscriptions.isEmpty { return .push([.bulk("unsubscribe"), .bulk(nil), .integer(0)]) }
        return unsubscribe(from: Array(subscriptions))
    }
}
