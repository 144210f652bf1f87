import ExampleSupport
import Reactor

/// The command line: `mqtt-broker [--listen HOST:PORT] [--queue-limit BYTES] …`.
struct Options {
    private(set) var address: SocketAddress
    private(set) var limits = Limits()

    init(_ arguments: some Sequence<String>) throws {
        address = try SocketAddress("127.0.0.1:1883")
        for option in try CommandLineOption.all(in: arguments) {
            switch option.name {
            case "--listen": address = try option.address()
            case "--max-clients": limits.clients = try option.count()
            case "--max-packet": limits.packet = try option.bytes()
            case "--max-subscriptions": limits.subscriptions = try option.count()
            case "--queue-limit": limits.queue = try option.bytes()
            case "--retained-limit": limits.retained = try option.bytes()
            case "--packet-timeout": limits.packetTime = try option.seconds()
            default: throw option.unknown
            }
        }
    }
}

/// The limits of the broker and of its clients.
package struct Limits {
    /// Maximum number of clients. Further ones wait.
    var clients = 10_000
    /// Bytes of a packet. A client that sends a larger one is disconnected.
    var packet = 1 << 20
    /// Subscriptions of a client. Further ones are refused in the answer.
    var subscriptions = 1000
    /// Bytes queued for a client. Beyond that it is disconnected.
    var queue = 1 << 20
    /// Bytes of all retained messages. A client that publishes one beyond that is disconnected.
    var retained = 64 << 20
    /// Bytes of unfinished packets and unread messages of all clients together.
    var memory = 256 << 20
    /// The time limit for a client's first packet, and for the rest of any packet.
    var packetTime = Duration.seconds(30)
    /// The time limit for clients when the broker ends.
    var drain = Duration.seconds(10)

    package init() {}
}
