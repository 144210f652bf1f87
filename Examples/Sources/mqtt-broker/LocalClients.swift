import Promises
import Reactor
import ReactorIO

/// The clients of one loop. Each loop has its own object, so there is neither a lock nor an actor.
package final class LocalClients {
    private let loop = EventLoop.current.remote
    private var clients: [Int: Client] = [:]
    private var count = 0

    package init() {}

    subscript(number: Int) -> Client? { clients[number] }

    func add(_ client: Client) -> Place {
        count += 1
        clients[count] = client
        return Place(loop: loop, number: count)
    }

    func remove(_ place: Place) { clients[place.number] = nil }

    /// Does not wait for clients: a client whose queue exceeds the limit is reset, which ends its session.
    func deliver(_ message: Message) {
        let topic = Filter.levels(of: message.topic)
        var connections: [Connection] = []
        for client in clients.values {
            guard let quality = client.quality(for: topic) else { continue }
            if min(quality, message.quality) == 0 {
                connections.append(client.connection)
            } else {
                client.deliver(message)
            }
        }
        broadcast(message.bytes(number: nil), to: connections, overflow: .abort)
    }
}

/// A connected client and its subscriptions.
final class Client {
    let connection: Connection
    private let subscriptionLimit: Int
    private var qualities: [Filter: UInt8] = [:]
    private var lastNumber: UInt16 = 0

    init(_ connection: Connection, subscriptionLimit: Int) {
        self.connection = connection
        self.subscriptionLimit = subscriptionLimit
    }

    /// Sends a packet without waiting.
    func send(_ packet: [UInt8]) { connection.post(packet, overflow: .abort) }

    /// The best quality of the matching subscriptions; `nil` if there is none.
    func quality(for topic: [ArraySlice<UInt8>]) -> UInt8? {
        qualities.lazy.filter { $0.key.matches(topic) }.map(\.value).max()
    }

    /// Sends a message that the client acknowledges. Nothing waits for the acknowledgement: messages are lost with the
    /// connection.
    func deliver(_ message: Message) {
        lastNumber = lastNumber % .max + 1
        send(message.bytes(number: lastNumber))
    }

    func subscribe(_ number: UInt16, to filters: [(filter: Filter, quality: UInt8)], _ retained: [Message]) {
        let granted = filters.map { filter, quality -> UInt8 in
            let isFull = qualities.count >= subscriptionLimit && qualities[filter] == nil
            if !isFull { qualities[filter] = quality }
            return isFull ? 0x80 : quality
        }
        send(
            Packet.bytes(0x90) {
                $0.append(number)
                $0.append(granted)
            })
        for message in retained {
            guard let quality = quality(for: Filter.levels(of: message.topic)) else { continue }
            if min(message.quality, quality) == 0 { send(message.bytes(number: nil)) } else { deliver(message) }
        }
    }

    func unsubscribe(_ number: UInt16, from filters: [Filter]) {
        for filter in filters { qualities[filter] = nil }
        send(Packet.bytes(0xB0) { $0.append(number) })
    }
}
