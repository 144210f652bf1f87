import ExampleSupport
import Reactor

/// The command line: `chat [--listen HOST:PORT] [--queue-limit BYTES] [--idle-timeout SECONDS]`.
struct Options {
    private(set) var address: SocketAddress
    private(set) var limits = Limits()

    init(_ arguments: some Sequence<String>) throws {
        address = try SocketAddress("127.0.0.1:7001")
        for option in try CommandLineOption.all(in: arguments) {
            switch option.name {
            case "--listen": address = try option.address()
            case "--queue-limit": limits.queue = try option.bytes()
            case "--idle-timeout": limits.idle = try option.seconds()
            default: throw option.unknown
            }
        }
    }
}

/// What one client may take of the server.
struct Limits {
    /// Bytes of a line.
    var line = 1024
    /// Letters and digits of a name.
    var name = 20
    /// Bytes that may wait for a client, those of bookkeeping included; see `Connection.writeQueueLimit`. A client for
    /// which more would wait is disconnected.
    var queue = 256 << 10
    /// How long nothing may be sent to a client or received from it.
    var idle = Duration.seconds(3600)
}
