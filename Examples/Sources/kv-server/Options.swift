import ExampleSupport
import Reactor

/// The command line: `kv-server [--listen HOST:PORT] [--idle-timeout SECONDS] …`.
struct Options {
    private(set) var address: SocketAddress
    private(set) var limits = Limits()
    /// The address of the console.
    private(set) var console: String?

    init(_ arguments: some Sequence<String>) throws {
        address = try SocketAddress("127.0.0.1:6379")
        for option in try CommandLineOption.all(in: arguments) {
            switch option.name {
            case "--listen": address = try option.address()
            case "--console": console = option.value
            case "--idle-timeout": limits.idle = try option.seconds()
            case "--request-timeout": limits.partialRequest = try option.seconds()
            case "--max-request": limits.request = try option.bytes()
            default: throw option.unknown
            }
        }
    }
}

/// Limits per client, except `memory`.
package struct Limits {
    /// Bytes of unfinished requests and unread answers of all clients together.
    var memory = 256 << 20
    /// Bytes of an inline command.
    var line = 65_536
    /// Bytes of the line before an array or before a word.
    var header = 64
    /// Words of a request.
    var words = 1_048_576
    /// Bytes of all words of a request.
    var request = 512 << 20
    /// Bytes queued for a subscriber, including bookkeeping; see `Connection.writeQueueLimit`.
    var subscriberQueue = 1 << 20
    /// The idle limit of a client without subscriptions.
    package var idle = Duration.seconds(300)
    /// The time limit for the rest of a request after its first line.
    var partialRequest = Duration.seconds(10)

    package init() {}
}
