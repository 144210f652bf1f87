import Reactor

/// One socket of a listener, as the poller knows it.
final class ListenerDoor: ReadinessHandler {
    private let listening: ListeningSocket
    /// The listener, held while this door waits: nobody else need hold it then.
    var keeper: Listener?

    init(_ listening: ListeningSocket) { self.listening = listening }

    var socket: Socket { listening.socket }
    var address: SocketAddress { listening.address }

    /// As `whatKeepsItAlive` shows it: of several sockets the one that waits.
    package var label: String { "Listener(\(address))" }

    func close() { listening.close() }

    package func descriptorIsReady(_ ready: Interest) { keeper?.isReady(self) }

    package func loopIsEnding() { keeper?.loopIsEnding() }
}

/// Who has asked a listener for connections: each `accept` that waits, or `serve`.
///
/// An object of its own, which is still whole when the listener goes: an inline handler of one promise that is rejected
/// then may cancel another.
final class ListenerClaims: IOProducer {
    var waiting: [Core] = []
    var service: Service?
    weak var listener: Listener?

    struct Service {
        let limit: Int
        /// Calls the handler; what it answers settles when the handler's promise has, and then the connection is being closed.
        let start: (Listener, Connection, Int) -> Core
        let promise: Core
    }

    func refuseAll(_ error: SystemError) {
        while !waiting.isEmpty { waiting.removeFirst().reject(error) }
        service.take()?.promise.reject(error)
    }

    /// An `accept` was cancelled, or `serve`.
    func stop(_ promise: Core) -> Bool {
        if let service, service.promise === promise {
            self.service = nil
            if let listener, !listener.isClosed { listener.release() }
            return true
        }
        guard let index = waiting.firstIndex(where: { $0 === promise }) else { return false }
        waiting.remove(at: index)
        listener?.updateInterest()
        return true
    }
}

/// The connections that `serve` has running. Places are used again, so that taking one allocates nothing once there have
/// been as many before.
struct RunningConnections {
    struct Entry {
        let connection: Connection
        /// What waits for its handler's promise.
        var waiter: Core?
    }

    private var entries: ContiguousArray<Entry?> = []
    private var free: ContiguousArray<Int> = []

    var count: Int { entries.count - free.count }

    /// Those that run at the moment.
    var all: [Entry] { entries.compactMap { $0 } }

    mutating func insert(_ connection: Connection) -> Int {
        if let place = free.popLast() {
            entries[place] = Entry(connection: connection)
            return place
        }
        entries.append(Entry(connection: connection))
        return entries.count - 1
    }

    mutating func remove(_ place: Int) -> Entry? {
        free.append(place)
        return entries[place].take()
    }

    subscript(place: Int) -> Entry? {
        get { entries[place] }
        set { entries[place] = newValue }
    }
}
