import Reactor

/// Where a client is: its loop, and its number there.
struct Place: Sendable, Equatable {
    let loop: LoopRemote
    let number: Int
}

/// The state that the clients on all loops share, and the order of the messages.
actor Broker {
    private let group: LoopGroup
    private let clients: LoopLocal<LocalClients>
    private let retainedLimit: Int
    private var retained: [[UInt8]: Message] = [:]
    private var retainedBytes = 0
    /// By the names of the clients.
    private var places: [[UInt8]: Place] = [:]

    init(on group: LoopGroup, _ clients: LoopLocal<LocalClients>, retainedLimit: Int) {
        self.group = group
        self.clients = clients
        self.retainedLimit = retainedLimit
    }

    /// A client has connected. One of the same name is disconnected.
    func enter(_ name: [UInt8], at place: Place) {
        // A client without a name is a new one.
        guard !name.isEmpty, let old = places.updateValue(place, forKey: name) else { return }
        old.loop.submit { [clients] in clients.withValue { $0[old.number]?.connection.abort() } }
    }

    /// A client has left.
    func leave(_ name: [UInt8], at place: Place, will: Message?) {
        if places[name] == place { places[name] = nil }
        if let will { try? publish(will) }
    }

    /// Sends a message to all subscribers. Each loop gets one job, which writes to the connections of that loop. The actor
    /// submits one message after the other, so all loops get the messages in one order.
    /// - Throws: `ProtocolError` if it would be retained beyond the limit. Then it is not sent.
    func publish(_ message: Message) throws {
        if message.isRetained { try retain(message) }
        var message = message
        // The flag marks messages that were published before the subscription.
        message.isRetained = false
        for loop in group {
            loop.submit { [clients, message] in clients.withValue { $0.deliver(message) } }
        }
    }

    /// Keeps a message in place of the last one of its topic, or nothing if it is empty.
    private func retain(_ message: Message) throws {
        let old = retained[message.topic].map(\.memory) ?? 0
        let new = message.payload.isEmpty ? 0 : message.memory
        if new > old && retainedBytes - old + new > retainedLimit { throw ProtocolError() }
        retainedBytes += new - old
        retained[message.topic] = new == 0 ? nil : message
    }

    /// Adds subscriptions, and answers with the messages that are retained for them. The client's loop gets a job in the
    /// order of the messages: none is between these messages and the first of the subscription.
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
    /// Bytes that it takes when it is retained, roughly.
    fileprivate var memory: Int { 2 * topic.count + payload.count + 200 }
}
