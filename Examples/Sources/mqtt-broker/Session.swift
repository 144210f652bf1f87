import Promises
import Reactor
import ReactorIO

/// The session of one client, from its first packet to its last.
package struct Session {
    let connection: Connection
    let clients: LocalClients
    let broker: Broker
    let limits: Limits

    package init(connection: Connection, clients: LocalClients, broker: Broker, limits: Limits) {
        (self.connection, self.clients, self.broker, self.limits) = (connection, clients, broker, limits)
    }

    /// Returns after the client has disconnected, and throws if its connection fails. The client's will is published
    /// unless it sent DISCONNECT.
    package func run() async throws {
        connection.writeQueueLimit = limits.queue
        connection.frameTimeouts = FrameTimeouts(idle: limits.packetTime, frame: limits.packetTime)
        var packets = connection.frames(PacketDecoder(limit: limits.packet)).makeAsyncIterator()
        let first: Packet?
        do { first = try await packets.next(isolation: nil) } catch let refusal as Refusal {
            return try await connection.write([0x20, 2, 0, refusal.rawValue]).value
        }
        guard case .connect(let name, let keepAlive, let will)? = first else { return }
        // One and a half times the interval in which the client has promised to send something.
        let idle = keepAlive == 0 ? nil : Duration.milliseconds(1500 * keepAlive)
        connection.frameTimeouts = FrameTimeouts(idle: idle, frame: limits.packetTime)
        let client = Client(connection, subscriptionLimit: limits.subscriptions)
        let place = clients.add(client)
        await broker.enter(name, at: place)
        client.send([0x20, 2, 0, 0])
        do {
            while let packet = try await packets.next(isolation: nil) {
                if case .disconnect = packet { return await leave(name, place, will: nil) }
                try await handle(packet, of: client, at: place)
            }
            await leave(name, place, will: will)
        } catch {
            await leave(name, place, will: will)
            throw error
        }
    }

    private func leave(_ name: [UInt8], _ place: Place, will: Message?) async {
        clients.remove(place)
        await broker.leave(name, at: place, will: will)
    }

    private func handle(_ packet: Packet, of client: Client, at place: Place) async throws {
        switch packet {
        case .publish(let message, let number):
            try await broker.publish(message)
            if let number { client.send(Packet.bytes(0x40) { $0.append(number) }) }
        case .subscribe(let number, let filters): await broker.subscribe(place, number: number, to: filters)
        case .unsubscribe(let number, let filters): client.unsubscribe(number, from: filters)
        case .ping: client.send([0xD0, 0])
        case .acknowledgement: break
        case .connect, .disconnect: throw ProtocolError()
        }
    }
}
