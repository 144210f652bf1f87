import ExampleSupport
import Reactor

/// The command line: `kv-server [--listen HOST:PORT] [--idle-timeout SECONDS] …`.
struct Options {
    private(set) var address: SocketAddress
    private(set) var limits = Limits()

    init(_ arguments: some Sequence<String>) throws {
        address = try SocketAddress("127.0.0.1:6379")
        for option in try CommandLineOption.all(in: arguments) {
            switch option.name {
            case "--listen": address = try option.address()
            case "--idle-timeout": limits.idle = try option.seconds()
            case "--request-timeout": limits.partialRequest = try option.seconds()
            case "--max-request": limits.request = try option.bytes()
            default: throw option.unknown
            }
        }
    }
}

/// What one client may take of the server.
struct Limits {
    /// Bytes that all clients together may have sent in unfinished requests, or not read of their answers.
    var memory = 256 << 20
    /// Bytes of an inline command.
    var line = 65_536
    /// Bytes of the line before an array or before a word.
    var header = 64
    /// Words of a request.
    var words = 1_048_576
    /// Bytes of all words of a request.
    var request = 512 << 20
    /// Bytes that may wait for a subscriber, those of bookkeeping included; see `Connection.writeQueueLimit`.
    var subscriberQueue = 1 << 20
    /// How long a client may be silent that is not subscribed.
    var idle = Duration.seconds(300)
    /// How long the rest of a request may take once its first line has arrived.
    var partialRequest = Duration.seconds(10)
}
