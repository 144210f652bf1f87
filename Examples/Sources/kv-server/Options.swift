import Reactor

/// The command line: `kv-server [--listen HOST:PORT] [--idle-timeout SECONDS]`.
struct Options {
    struct UsageError: Error, CustomStringConvertible { let description: String }

    private(set) var address: SocketAddress
    private(set) var limits = Limits()

    init(_ arguments: some Sequence<String>) throws {
        address = try SocketAddress("127.0.0.1:6379")
        var rest = arguments.makeIterator()
        while let option = rest.next() {
            guard let value = rest.next() else { throw UsageError(description: "\(option) needs a value") }
            switch option {
            case "--listen": address = try SocketAddress(value)
            case "--idle-timeout": limits.idle = try Self.seconds(value)
            case "--request-timeout": limits.partialRequest = try Self.seconds(value)
            default: throw UsageError(description: "unknown option '\(option)'")
            }
        }
    }

    private static func seconds(_ text: String) throws(UsageError) -> Duration {
        guard let seconds = Double(text), 0.001...86_400 ~= seconds else {
            throw UsageError(description: "'\(text)' is not a number of seconds from 0.001 to 86400")
        }
        return .seconds(seconds)
    }
}

/// What one client may take of the server.
struct Limits {
    /// Bytes of an inline command.
    var line = 65_536
    /// Bytes of the line before an array or before a word.
    var header = 64
    /// Words of a request.
    var words = 1_048_576
    /// Bytes of all words of a request.
    var request = 16 << 20
    /// Bytes that may wait for a subscriber, those of bookkeeping included; see `Connection.writeQueueLimit`.
    var subscriberQueue = 1 << 20
    /// How long a client may be silent that is not subscribed.
    var idle = Duration.seconds(300)
    /// How long the rest of a request may take once its first line has arrived.
    var partialRequest = Duration.seconds(10)
}
