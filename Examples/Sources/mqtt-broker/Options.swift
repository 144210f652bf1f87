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

/// What clients may take of the broker.
struct Limits {
    /// Clients at once. Others wait.
    var clients = 10_000
    /// Bytes of a packet. A client that sends a larger one is disconnected.
    var packet = 1 << 20
    /// Subscriptions of a client. Further ones are refused in the answer.
    var subscriptions = 1000
    /// Bytes that may wait for a client that does not read. Beyond that it is disconnected.
    var queue = 1 << 20
    /// Bytes of all messages that are retained. Who publishes one beyond that is disconnected.
    var retained = 64 << 20
    /// Bytes that all clients together may have sent in unfinished packets, or not read of their messages.
    var memory = 256 << 20
    /// How long a client may take for its first packet, and for the rest of one that has begun.
    var packetTime = Duration.seconds(30)
    /// How long clients may go on when the broker ends.
    var drain = Duration.seconds(10)
}
