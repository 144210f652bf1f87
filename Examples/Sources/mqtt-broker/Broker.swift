import Reactor

/// The location of a client: its loop, and its number there.
struct Place: Sendable, Equatable {
    let loop: LoopRemote
    let number: Int
}

/// The state shared by the clients of all loops, and the order of the messages. It lives on the first of the loops.
package actor Broker {
    private let loops: [LoopRemote]
    package nonisolated var unownedExecutor: UnownedSerialExecutor { loops[0].asUnownedSerialExecutor() }
    private let clients: LoopLocal<LocalClients>
    private let retainedLimit: Int
    private var retained: [[UInt8]: Message] = [:]
    private var retainedBytes = 0
    /// Keyed by the names of the clients.
    private var places: [[UInt8]: Place] = [:]

    package init(on loops: [LoopRemote], _ clients: LoopLocal<LocalClients>, retainedLimit: Int) {
        self.loops = loops
        self.clients = clients
        self.retainedLimit = retainedLimit
    }

    /// Adds a client that has connected, and disconnects an older one of the same name.
    func enter(_ name: [UInt8], at place: Place) {
        // A client without a name is a new one.
        guard !name.isEmpty, let old = places.updateValue(place, forKey: name) else { return }
        old.loop.submit { [clients] in clients.withValue { $0[old.number]?.connection.abort() } }
    }

    /// Removes a client that has disconnected.
    func leave(_ name: [UInt8], at place: Place, will: Message?) {
        if places[name] == place { places[name] = nil }
        if let will { try? publish(will) }
    }

    /// Sends a message to all subscribers. Each loop gets one job, which writes to that loop's connections. The actor
    /// submits one message after the other, so all loops get them in the same order.
    /// - Throws: `ProtocolError` if retaining the message would exceed the limit. It is not sent then.
    func publish(_ message: Message) throws {
        if message.isRetained { try retain(message) }
        var message = message
        // The flag marks messages published before the subscription.
        message.isRetained = false
        for loop in loops {
            loop.submit { [clients, message] in clients.withValue { $0.deliver(message) } }
        }
    }

    /// Retains a message in place of its topic's last one, or nothing if it is empty.
    private func retain(_ message: Message) throws {
        let old = retained[message.topic].map(\.memory) ?? 0
        let new = message.payload.isEmpty ? 0 : message.memory
        if new > old && retainedBytes - old + new > retainedLimit { throw ProtocolError() }
        retainedBytes += new - old
        retained[message.topic] = new == 0 ? nil : message
    }

    /// Adds subscriptions, and answers with the messages retained for them. The client's loop gets a job in the order
    /// of the messages: no message comes between these and the first one of the subscription.
    func subscribe(_ place: Place, number: UInt16, to filters: [(filter: Filter, quality: UInt8)]) {
        let messages = retained.values.filter { message in
            let topic = Filter.levels(of: message.topic)
            return filters.contains { $0.filter.matches(topic) }
        }
        place.loop.submit { [clients] in
            clients.withValue { $0[place.number]?.subscribe(number, to: filters, messages) }
        }
    }
}

extension Message {
    /// The approximate memory of the message when retained, in bytes.
    fileprivate var memory: Int { 2 * topic.count + payload.count + 200 }
}
