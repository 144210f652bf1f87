import Reactor

/// The command line: `http-server [--listen HOST:PORT] [--head-timeout SECONDS] …`.
struct Options {
    struct UsageError: Error, CustomStringConvertible { let description: String }

    private(set) var address: SocketAddress
    private(set) var limits = Limits()

    init(_ arguments: some Sequence<String>) throws {
        address = try SocketAddress("127.0.0.1:8080")
        var rest = arguments.makeIterator()
        while let option = rest.next() {
            guard let value = rest.next() else { throw UsageError(description: "\(option) needs a value") }
            switch option {
            case "--listen": address = try SocketAddress(value)
            case "--idle-timeout": limits.idle = try Self.seconds(value)
            case "--head-timeout": limits.headTime = try Self.seconds(value)
            case "--body-timeout": limits.bodyTime = try Self.seconds(value)
            case "--drain-timeout": limits.drain = try Self.seconds(value)
            case "--slowness": limits.slowness = try Self.seconds(value)
            case "--max-head": limits.head = try Self.bytes(value)
            case "--max-body": limits.body = try Self.bytes(value)
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

    private static func bytes(_ text: String) throws(UsageError) -> Int {
        guard let bytes = Int(text), 16...1 << 30 ~= bytes else {
            throw UsageError(description: "'\(text)' is not a number of bytes from 16 to 1073741824")
        }
        return bytes
    }
}

/// What one client may take of the server.
struct Limits {
    /// Bytes of a head, and of the trailers of a body.
    var head = 16_384
    /// Bytes of a body.
    var body = 1 << 20
    /// Fields of a head.
    static let fields = 100
    /// Bytes of the line before a chunk.
    static let chunkLine = 256
    /// How long a client may be silent, between two requests or while it does not read an answer.
    var idle = Duration.seconds(60)
    /// How long the rest of a head may take once its first bytes have arrived.
    var headTime = Duration.seconds(10)
    /// How long a body may take.
    var bodyTime = Duration.seconds(30)
    /// How long requests under way may take when the server ends.
    var drain = Duration.seconds(10)
    /// How long `/slow` takes.
    var slowness = Duration.seconds(1)
}
